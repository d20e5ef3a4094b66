/* Proves a request: prove REQUEST PROOF writes the proof of the file REQUEST to PROOF.
 * Parameters are in FIL_PROOFS_PARAMETER_CACHE. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuzk.h"

/* Says why a call failed, and ends the program. */
static void check(const char *call, int32_t code) {
    if (code == CUZK_OK) {
        return;
    }
    fprintf(stderr, "%s: %s\n", call, cuzk_lend_error());
    if (code == CUZK_BUSY) {
        fprintf(stderr, "submit again when a job has ended\n");
    }
    exit(1);
}

/* Reads a file into memory that the caller frees. */
static char *read_file(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long end = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        end = ftell(file);
        rewind(file);
    }
    if (end > 0) {
        bytes = malloc((size_t)end);
    }
    if (bytes == NULL || fread(bytes, 1, (size_t)end, file) != (size_t)end) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    *len = (size_t)end;
    return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t len) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
}

/* Waits for the end of a job as a program with an event loop would. */
static void await(const cuzk_job *job) {
    struct pollfd end = {.fd = -1, .events = POLLIN};
    check("cuzk_job_lend_eventfd", cuzk_job_lend_eventfd(job, &end.fd));
    while (poll(&end, 1, 1000) < 1) {
        size_t done, partitions;
        check("cuzk_job_progress", cuzk_job_progress(job, &done, &partitions));
        printf("%zu of %zu partitions are proved\n", done, partitions);
    }
    check("cuzk_job_poll", cuzk_job_poll(job));
}

int main(int argc, char **argv) {
    /* An engine of a network makes multiples of its parameters; a test does not. */
    static const char config[] = "[srs]\nmultiples = []\n";
    static const char options[] = "{\"priority\": \"high\", \"deadline_ms\": 3600000}";
    if (argc != 3) {
        fprintf(stderr, "usage: prove REQUEST PROOF\n");
        return 2;
    }
    printf("cuzk %s\n", cuzk_lend_version());
    cuzk_engine *engine;
    check("cuzk_engine_new", cuzk_engine_new(config, sizeof config - 1, &engine));

    size_t len;
    char *request = read_file(argv[1], &len);
    cuzk_job *job;
    check("cuzk_job_new",
          cuzk_job_new(engine, request, len, options, sizeof options - 1, &job));
    free(request);
    await(job);

    /* The proof belongs to the job. */
    const uint8_t *proof;
    check("cuzk_job_lend_proof", cuzk_job_lend_proof(job, &proof, &len));
    write_file(argv[2], proof, len);
    cuzk_job_free(job);

    char *status;
    check("cuzk_status_new", cuzk_status_new(engine, &status));
    printf("%s\n", status);
    cuzk_status_free(status);

    size_t left;
    check("cuzk_engine_end", cuzk_engine_end(engine, 60 * 1000, &left));
    cuzk_engine_free(engine);
    printf("the proof has %zu bytes; %zu jobs were not proved\n", len, left);
    return 0;
}
