/* root_arithmetic.c - what a root works out from reports: rounds, missing ranks, contradictions. */
#include "root.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int rondo_rounds(int ranks)
{
    int rounds = 0;

    while ((INT64_C(1) << rounds) < ranks)
        rounds++;
    return rounds;
}

int rondo_ranks_missing(const unsigned char *is_there, int ranks, char *out, size_t bytes)
{
    int missing = 0;
    size_t used = 0;
    bool is_full = false;

    snprintf(out, bytes, "none");
    for (int first = 0; first < ranks; first++) {
        int last = first;
        char piece[32];

        if (is_there[first])
            continue;
        while (last + 1 < ranks && !is_there[last + 1])
            last++;
        missing += last - first + 1;
        if (first == last)
            snprintf(piece, sizeof(piece), "%s%d", used > 0 ? "," : "", first);
        else
            snprintf(piece, sizeof(piece), "%s%d-%d", used > 0 ? "," : "", first, last);
        first = last;
        if (!is_full && used + strlen(piece) + sizeof(",...") > bytes) {
            snprintf(out + used, bytes - used, ",...");
            is_full = true;
        }
        if (!is_full)
            used += (size_t)snprintf(out + used, bytes - used, "%s", piece);
    }
    return missing;
}

bool rondo_report_read(const void *data, size_t bytes, struct rondo_report *report_out)
{
    if (bytes < sizeof(*report_out))
        return false;
    memcpy(report_out, data, sizeof(*report_out));
    return report_out->bytes <= RONDO_REASON_MOST && bytes == sizeof(*report_out) + report_out->bytes;
}

bool rondo_reports_agree(const struct rondo_report *report, const struct rondo_report *first, char *text,
                         size_t bytes)
{
    char here[RONDO_ADDRESS_TEXT], there[RONDO_ADDRESS_TEXT];

    rondo_address_text(&report->listener, there);
    if (report->rank < 0 || report->rank >= report->ranks) {
        snprintf(text, bytes, "rank %d (%s) is out of range: ranks of %d are 0 to %d", report->rank, there,
                 report->ranks, report->ranks - 1);
        return false;
    }
    if (!first)
        return true;
    rondo_address_text(&first->listener, here);
    if (report->ranks != first->ranks)
        snprintf(text, bytes, "the number of ranks differs: rank %d (%s) says %d, rank %d (%s) says %d",
                 first->rank, here, first->ranks, report->rank, there, report->ranks);
    else if (report->version != first->version)
        snprintf(text, bytes,
                 "library versions differ: rank %d (%s) runs %" PRIu32 ", rank %d (%s) runs %" PRIu32
                 ": install one version on all hosts",
                 first->rank, here, first->version, report->rank, there, report->version);
    return report->ranks == first->ranks && report->version == first->version;
}
