/* internal.h: what the files of the library share. */
#ifndef CLICKBOX_INTERNAL_H
#define CLICKBOX_INTERNAL_H

#include "clickbox.h"

#include <stdio.h>

#define MAX_FACES 2
#define MAX_DESTINATIONS 64
/* The answer that stands for CLICKBOX_NOWHERE: a service that is not there. The switch overrules and counts it. */
#define NO_SERVICE 0x7ff9u
#define MAX_COUNTERS 32
#define NAME_SIZE 64
#define COUNTER_NAME_SIZE 24
#define MESSAGE_SIZE 8192
#define WAITING_MESSAGES 64
/* What is known of the end of a membership. */
#define SAID 1
#define NO_MORE_PACKETS 2
/* Requests for the state of flows. */
#define LIST_STATES 0x105
#define EXPORT_STATES 0x106
#define IMPORT_STATES 0x107
#define NO_BUFFER UINT32_MAX
#define MAX_BUFFERS (1u << 20)

/* One direction at one face. Indices count slots ever written or taken; they wrap. */
struct ring {
    uint8_t *start;
    uint32_t position; /* Of this side: the next slot to take, or to write. */
    uint32_t seen;     /* The last known index of the other side. */
    uint32_t shown;    /* The index of this side that the other one knows. */
    uint32_t borrowed; /* In a transmit ring: buffers of the slots before it were taken. */
};

struct counter {
    char name[COUNTER_NAME_SIZE];
    uint64_t value;
};

struct message {
    char from[NAME_SIZE];
    size_t length;
    uint8_t bytes[CLICKBOX_MESSAGE_SIZE];
};

/* Whether to look for packets for longer before a sleep: see watch.c. Times are in nanoseconds. */
struct watch {
    uint64_t packets, counted_since; /* Packets since then. */
    int is_busy;                     /* When that was last counted. */
    uint64_t idle_since;             /* When the function was first about to sleep since it last got packets; else zero. */
    uint64_t length;                 /* For how long it then looks for packets. */
    int came_soon;                   /* Whether packets came within the longest such time. */
    uint64_t kept_until;             /* Until when it looks for none. */
};

struct clickbox {
    /* The connection, and the doorbell. */
    int control, doorbell;
    uint8_t *region;
    size_t region_size;
    /* The packet pool of the owner, if the buffers are there. */
    uint8_t *pool;
    size_t pool_size;
    uint8_t *buffers;
    uint32_t buffer_count, slots;
    unsigned faces, destinations;
    struct ring receive[MAX_FACES], transmit[MAX_FACES];
    /* Buffers that are in no ring. */
    uint32_t *spare;
    uint32_t spares;
    char name[NAME_SIZE], service[NAME_SIZE];
    /* As in answers: `NAME` or `port:NAME`. */
    char destination[MAX_DESTINATIONS][NAME_SIZE + 8];
    uint32_t spin_us;
    struct watch watch;
    uint64_t now, published, looked;
    int gone;
    int lets_leave; /* Whether clickbox understands LEAVE. */
    int leaving; /* SAID or NO_MORE_PACKETS once the function leaves in order. */
    volatile int stopped; /* How often clickbox_stop was called. */
    struct counter counter[MAX_COUNTERS];
    unsigned counters;
    uint64_t nowhere;
    /* How flows are handed over, or NULL. */
    const struct clickbox_hand_over *hand_over;
    int asks;                /* Whether clickbox asks for the state of flows. */
    uint64_t asked;          /* When it did so last. */
    uint8_t *request;        /* What it asked for, and has no answer yet. */
    size_t request_length;   /* Zero without one. */
    struct message *messages;
    unsigned first_message, message_count;
    /* Captures. */
    FILE *in, *out;
    int swapped, nanoseconds, finished;
    uint64_t capture_time;
};

static inline void put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void put32(uint8_t *at, uint32_t value)
{
    put16(at, (uint16_t)value);
    put16(at + 2, (uint16_t)(value >> 16));
}

static inline void put64(uint8_t *at, uint64_t value)
{
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)(value >> 32));
}

static inline uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t get32(const uint8_t *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static inline uint64_t get64(const uint8_t *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

void clickbox_set_error(const char *format, ...);
uint64_t clickbox_clock(void);

/* handover.c */
void clickbox_answer_request(struct clickbox *box);

/* watch.c */
void clickbox_watch_found(struct watch *watch, unsigned packets);
int clickbox_watch_on(struct watch *watch);
void clickbox_watch_slept(struct watch *watch, uint64_t now);
void clickbox_watch_pause(void);

/* capture.c */
int clickbox_read_capture(struct clickbox *box, struct clickbox_packet *packets, unsigned most);
int clickbox_write_capture(struct clickbox *box, const struct clickbox_packet *packet);

#endif
