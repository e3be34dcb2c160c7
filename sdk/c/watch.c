/* watch.c: how long a busy function looks for packets before it sleeps, as clickbox's own boxes do.
 *
 * To wake a function whose processor has halted costs the switch some 5 us. So a busy function lets others of its processor run and looks
 * again. It looks for longer while packets come soon, and for less while they do not. */
#define _GNU_SOURCE
#include "internal.h"

#include <sched.h>

/* Packets in the longest time, on average, from which on a function is busy. */
#define BUSY 32
/* The shortest and the longest time, in nanoseconds. */
#define SHORTEST 20000ull
#define LONGEST 200000ull
/* For how many times as long as others kept the processor the function looks for no packets, if they kept it for longer than the longest
   time. Where others compute, a function that sleeps is woken at once, and one that lets them run waits for them. */
#define KEPT 16

void clickbox_watch_found(struct watch *watch, unsigned packets)
{
    if (packets == 0)
        return;
    watch->packets += packets;
    watch->came_soon |= watch->idle_since != 0;
    watch->idle_since = 0;
}

static void begin(struct watch *watch, uint64_t now)
{
    uint64_t passed = now - watch->counted_since;
    watch->idle_since = now;
    if (watch->packets >= BUSY || passed >= LONGEST) {
        watch->is_busy = watch->packets / BUSY * LONGEST >= passed;
        watch->packets = 0;
        watch->counted_since = now;
    }
    if (watch->is_busy && watch->came_soon) {
        watch->length *= 2;
        watch->length = watch->length < SHORTEST ? SHORTEST : watch->length > LONGEST ? LONGEST : watch->length;
    } else {
        watch->length = watch->length > SHORTEST ? watch->length / 2 : 0;
    }
    watch->came_soon = 0;
}

/* Lets others run, unless the function has looked for packets long enough; returns whether it did. */
int clickbox_watch_on(struct watch *watch)
{
    uint64_t now = clickbox_clock();
    if (watch->idle_since == 0)
        begin(watch, now);
    if (now < watch->kept_until || now - watch->idle_since >= watch->length)
        return 0;
    sched_yield();
    uint64_t kept = clickbox_clock() - now;
    if (kept > LONGEST) {
        watch->length = 0;
        watch->kept_until = now + kept * KEPT;
    }
    return 1;
}

/* Notes that the function has slept until now. */
void clickbox_watch_slept(struct watch *watch, uint64_t now)
{
    watch->came_soon = watch->idle_since != 0 && now - watch->idle_since < LONGEST;
    watch->idle_since = 0;
    watch->packets = 0;
    watch->counted_since = now;
}

/* Tells the processor that a loop waits. */
void clickbox_watch_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}
