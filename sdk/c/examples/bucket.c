/* bucket.c: limits the rate of what passes with a token bucket.
 *
 * $RATE is the rate in bits per second (default: 100 Mb/s), $BURST the size of the bucket in bytes (default: 64 KB). A packet for
 * which there are not enough tokens is dropped.
 */
#include "clickbox.h"

#include <stdio.h>
#include <stdlib.h>

struct bucket {
    double rate;   /* Bytes per nanosecond. */
    double burst;  /* The most tokens, in bytes. */
    double tokens;
    uint64_t updated;
    uint64_t *passed, *dropped;
};

static int start(struct clickbox *box, void *state)
{
    struct bucket *bucket = state;
    bucket->passed = clickbox_counter(box, "passed");
    bucket->dropped = clickbox_counter(box, "dropped");
    bucket->tokens = bucket->burst;
    bucket->updated = 0;
    return 0;
}

static clickbox_answer limit(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct bucket *bucket = state;
    uint64_t now = clickbox_now(box);
    if (bucket->updated && now > bucket->updated) {
        bucket->tokens += (double)(now - bucket->updated) * bucket->rate;
        if (bucket->tokens > bucket->burst)
            bucket->tokens = bucket->burst;
    }
    bucket->updated = now;
    if (bucket->tokens < packet->length) {
        ++*bucket->dropped;
        return CLICKBOX_DROP;
    }
    bucket->tokens -= packet->length;
    ++*bucket->passed;
    return CLICKBOX_NEXT;
}

/* A number from the environment, above zero. */
static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    char *end;
    if (!text)
        return otherwise;
    double value = strtod(text, &end);
    if (*end || !(value > 0)) {
        fprintf(stderr, "%s=%s: it must be a number above zero\n", name, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    struct bucket bucket = {.rate = setting("RATE", 100e6) / 8e9, .burst = setting("BURST", 65536)};
    struct clickbox_function function = {.packet = limit, .start = start, .state = &bucket};
    return clickbox_main(argc, argv, &function);
}
