/* report.h - the text on stdout. Only rank 0 prints; parsers exist for every line of it. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "bench.h"

#include <time.h>

/* A number in at most width characters: as many decimals (up to 2) as fit, else in scientific notation. */
void perf_number_format(char *text, size_t bytes, double value, int width);

/* "2026-01-31 23:59:59", local time; text has room for 32. */
void perf_time_format(char *text, time_t when);

void perf_report_header(const struct perf_run *run);
void perf_report_devices(const struct perf_run *run);
/* Of one rank that nobody asked for: how there would be more. Else nothing. */
void perf_report_hint(const struct perf_run *run);
void perf_report_columns(const struct perf_run *run);
void perf_report_line(const struct perf_worker *worker, const struct perf_case *bench_case,
                      const struct perf_sample *out_of_place, const struct perf_sample *in_place);
void perf_report_footer(const struct perf_run *run);

/* The redop column of a case: what the operation is called, or "none". */
const char *perf_report_op(const struct perf_run *run, const struct perf_case *bench_case);

/* The mean of all printed bus bandwidths. */
double perf_average_bus_bandwidth(const struct perf_run *run);
/* Is it high enough? true when nothing was asked. */
bool perf_is_bandwidth_enough(const struct perf_run *run);

#endif
