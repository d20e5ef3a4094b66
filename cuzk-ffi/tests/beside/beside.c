/* Proves in a process in which another copy of blst was loaded before: beside REQUEST PROOF.
 * The verification of a proof calls blst_final_exp. A library that took that from the other
 * copy would be counted there. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blst.h"
#include "cuzk.h"

extern unsigned other_blst_calls;

static void check(const char *call, int32_t code) {
    if (code != CUZK_OK) {
        fprintf(stderr, "%s: %s\n", call, cuzk_lend_error());
        exit(1);
    }
}

/* Computes a pairing of the generators with the other copy. */
static blst_fp12 pairing(void) {
    blst_fp12 value;
    blst_miller_loop(&value, blst_p2_affine_generator(), blst_p1_affine_generator());
    blst_final_exp(&value, &value);
    return value;
}

static void prove(cuzk_engine *engine, const char *request, size_t len, const char *path) {
    cuzk_job *job;
    const uint8_t *proof;
    check("cuzk_job_new", cuzk_job_new(engine, request, len, NULL, 0, &job));
    check("cuzk_job_wait", cuzk_job_wait(job, CUZK_FOREVER));
    check("cuzk_job_lend_proof", cuzk_job_lend_proof(job, &proof, &len));
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(proof, 1, len, file) != len || fclose(file) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
    cuzk_job_free(job);
}

int main(int argc, char **argv) {
    static const char config[] = "[srs]\nmultiples = []\n";
    static char request[1 << 24];
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: beside REQUEST PROOF\n");
        return 2;
    }
    size_t len = fread(request, 1, sizeof request, file);
    fclose(file);

    cuzk_engine *engine;
    blst_fp12 before = pairing();
    if (other_blst_calls != 1) {
        fprintf(stderr, "the other copy of blst does not count its calls\n");
        return 1;
    }
    check("cuzk_engine_new", cuzk_engine_new(config, sizeof config - 1, &engine));
    prove(engine, request, len, argv[2]);
    cuzk_engine_free(engine);
    if (other_blst_calls != 1) {
        fprintf(stderr, "the library called the other copy of blst %u times\n",
                other_blst_calls - 1);
        return 1;
    }
    blst_fp12 after = pairing();
    if (memcmp(&before, &after, sizeof before) != 0) {
        fprintf(stderr, "the other copy of blst computes something else after a proof\n");
        return 1;
    }
    printf("two copies of blst are apart\n");
    return 0;
}
