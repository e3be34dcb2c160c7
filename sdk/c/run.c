/* run.c: the loop that calls a function, and the main function of programs. */
#define _GNU_SOURCE
#include "internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 64
/* How long a function may take to answer what it has when it leaves. */
#define DRAIN_TIMEOUT 2000000000ull
/* How long it waits for the next request for the state of its flows. */
#define HAND_OVER_TIMEOUT 10000000000ull

static void deliver_messages(struct clickbox *box, const struct clickbox_function *function)
{
    char from[NAME_SIZE];
    uint8_t bytes[CLICKBOX_MESSAGE_SIZE];
    int length;
    while ((length = clickbox_receive_message(box, from, bytes)) >= 0)
        if (function->message)
            function->message(box, from, bytes, (size_t)length, function->state);
}

int clickbox_run(struct clickbox *box, const struct clickbox_function *function)
{
    struct clickbox_packet packets[BATCH];
    uint64_t tick = (function->tick_ms ? function->tick_ms : 1000) * 1000000ull;
    int started = function->start ? function->start(box, function->state) : 0;
    if (started)
        return started;
    uint64_t next = box->in ? UINT64_MAX : clickbox_clock() + tick;
    uint64_t since = 0, timeout = box->asks ? HAND_OVER_TIMEOUT : DRAIN_TIMEOUT;
    for (;;) {
        if (box->stopped && since == 0) {
            if (box->in || clickbox_drain(box) < 0)
                break;
            since = clickbox_clock();
        }
        if (since != 0 && box->asked > since)
            since = box->asked;
        if (box->stopped > 1 || (since != 0 && box->now >= since + timeout))
            break;
        int wait = since == 0 ? -1 : 100;
        if (function->tick && !box->in)
            wait = box->now < next ? (int)((next - box->now) / 1000000 + 1) : 0;
        int count = clickbox_receive(box, packets, BATCH, wait);
        for (int number = 0; number < count; number++) {
            struct clickbox_packet given = packets[number];
            clickbox_answer answer = function->packet(box, &packets[number], function->state);
            /* One that can't be sent goes back, or the function would run out of buffers. */
            if (clickbox_send(box, &packets[number], answer) < 0 && packets[number].buffer == given.buffer && !box->gone)
                clickbox_send(box, &given, CLICKBOX_DROP);
        }
        if (box->message_count > 0)
            deliver_messages(box, function);
        if (function->tick && box->now >= next && !box->in) {
            function->tick(box, function->state);
            next = box->now + tick;
        }
        if (count < 0) {
            if (box->finished && box->in && function->tick)
                function->tick(box, function->state);
            return box->finished ? 0 : -1;
        }
    }
    clickbox_flush(box);
    return 0;
}

static struct clickbox *volatile running;
static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
    if (running)
        clickbox_stop(running);
}

static int run_offline(const char *read, const char *write, const struct clickbox_function *function)
{
    struct clickbox *box = clickbox_offline(read, write);
    int result = box ? clickbox_run(box, function) : -1;
    if (result < 0)
        fprintf(stderr, "%s\n", clickbox_error());
    for (unsigned number = 0; box && number < box->counters; number++)
        printf("%s %llu\n", box->counter[number].name, (unsigned long long)box->counter[number].value);
    if (box && box->out && fflush(box->out) != 0) {
        fprintf(stderr, "the capture can't be written\n");
        result = -1;
    }
    clickbox_leave(box);
    return result == 0 ? 0 : 1;
}

int clickbox_main(int argc, char **argv, const struct clickbox_function *function)
{
    const char *read = NULL, *write = NULL, *path = NULL;
    for (int number = 1; number < argc; number++) {
        if (strcmp(argv[number], "--read") == 0 && number + 1 < argc)
            read = argv[++number];
        else if (strcmp(argv[number], "--write") == 0 && number + 1 < argc)
            write = argv[++number];
        else if (argv[number][0] != '-' && !path)
            path = argv[number];
        else {
            fprintf(stderr, "usage: %s [SOCKET|FOLDER]\n       %s --read IN.pcap [--write OUT.pcap]\n", argv[0], argv[0]);
            return 2;
        }
    }
    if (read)
        return run_offline(read, write, function);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int joined = 0, result = 0;
    while (!interrupted) {
        struct clickbox *box = clickbox_join(path, &function->options);
        if (box) {
            fprintf(stderr, "%s: joined as %s\n", argv[0], clickbox_name(box));
            joined = 1;
            running = box;
            result = interrupted ? 0 : clickbox_run(box, function);
            running = NULL;
            clickbox_leave(box);
            if (result >= 0)
                return result;
        }
        fprintf(stderr, "%s: %s\n", argv[0], clickbox_error());
        /* What never worked is told at once; what worked is tried again, because clickbox may be restarted. */
        if (!joined)
            return 1;
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    return 0;
}
