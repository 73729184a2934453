/* json.h - the -J file: the same results for programs. */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "bench.h"

struct perf_json;

/* Open path, which must not exist, else path.0, path.1 ..., if it ends in .json; and write everything before
 * the results. *json_out is NULL when no path is asked for, or one of another kind, which is said. */
enum perf_status perf_json_open(const struct perf_run *run, int argc, char **argv,
                                struct perf_json **json_out);

void perf_json_result(struct perf_json *json, const struct perf_worker *worker,
                      const struct perf_case *bench_case, const struct perf_sample *out_of_place,
                      const struct perf_sample *in_place);

/* Write what follows the results, and close. errors: one text, or NULL. Takes NULL. Without it the file is
 * cut short, and not JSON. */
void perf_json_close(struct perf_json *json, const struct perf_run *run, const char *error);

#endif
