/* flows.c: keeps packets and bytes of each flow, and prints a line for each flow that has ended.
 *
 * A flow ends $IDLE seconds after its last packet; the default is 10. At most 65,536 flows are kept. Upon SIGTERM, other instances go on
 * counting where this one was.
 */
#include "clickbox.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FLOWS 65536

struct record {
    uint64_t first, last;
    uint64_t packets[2], bytes[2];
};

struct tracker {
    struct clickbox_flows *flows;
    uint64_t idle;
    uint64_t *seen, *ended, *present, *other;
};

static void print(const struct clickbox_flow *flow, void *bytes, void *state)
{
    const struct record *record = bytes;
    struct tracker *tracker = state;
    char names[2][INET6_ADDRSTRLEN];
    for (int end = 0; end < 2; end++)
        inet_ntop(flow->version == 4 ? AF_INET : AF_INET6, flow->address[end], names[end], sizeof names[end]);
    ++*tracker->ended;
    printf("flow protocol %u %s:%u %s:%u packets %llu+%llu bytes %llu+%llu seconds %.3f\n", flow->protocol, names[0],
           flow->port[0], names[1], flow->port[1], (unsigned long long)record->packets[0],
           (unsigned long long)record->packets[1], (unsigned long long)record->bytes[0],
           (unsigned long long)record->bytes[1], (double)(record->last - record->first) / 1e9);
}

static int start(struct clickbox *box, void *state)
{
    struct tracker *tracker = state;
    tracker->seen = clickbox_counter(box, "flows_seen");
    tracker->ended = clickbox_counter(box, "flows_ended");
    tracker->present = clickbox_counter(box, "flows_present");
    tracker->other = clickbox_counter(box, "not_ip");
    if (!tracker->flows)
        tracker->flows = clickbox_flows_new(MAX_FLOWS, sizeof(struct record), tracker->idle, print, tracker);
    return tracker->flows ? 0 : 2;
}

static clickbox_answer track(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct tracker *tracker = state;
    struct clickbox_flow flow;
    uint64_t now = clickbox_now(box);
    int is_new, way = clickbox_flow(packet, &flow);
    if (way < 0) {
        ++*tracker->other;
        return CLICKBOX_NEXT;
    }
    struct record *record = clickbox_flow_state(tracker->flows, &flow, now, &is_new);
    if (is_new) {
        record->first = now;
        ++*tracker->seen;
    }
    record->last = now;
    record->packets[way - 1]++;
    record->bytes[way - 1] += packet->length;
    return CLICKBOX_NEXT;
}

static void tick(struct clickbox *box, void *state)
{
    struct tracker *tracker = state;
    *tracker->present = clickbox_flow_count(tracker->flows, clickbox_now(box));
}

static uint64_t next(struct clickbox *box, uint64_t position, struct clickbox_flow *flow, void *state)
{
    struct tracker *tracker = state;
    (void)box;
    return clickbox_flow_next(tracker->flows, position, flow);
}

static int export_flow(struct clickbox *box, const struct clickbox_flow *flow, void *bytes, void *state)
{
    struct tracker *tracker = state;
    const struct record *record = clickbox_flow_take(tracker->flows, flow);
    (void)box;
    if (!record)
        return -1;
    memcpy(bytes, record, sizeof *record);
    return sizeof *record;
}

static int import_flow(struct clickbox *box, const struct clickbox_flow *flow, const void *bytes, size_t length, void *state)
{
    struct tracker *tracker = state;
    if (length != sizeof(struct record))
        return -1;
    memcpy(clickbox_flow_state(tracker->flows, flow, clickbox_now(box), NULL), bytes, length);
    return 0;
}

int main(int argc, char **argv)
{
    const char *idle = getenv("IDLE");
    struct tracker tracker = {.idle = (idle ? strtoull(idle, NULL, 10) : 10) * 1000000000ull};
    struct clickbox_hand_over hand_over = {.version = 1,
                                           .size = sizeof(struct record),
                                           .next = next,
                                           .export_flow = export_flow,
                                           .import_flow = import_flow,
                                           .state = &tracker};
    struct clickbox_function function = {
        .packet = track, .start = start, .tick = tick, .state = &tracker, .options = {.hand_over = &hand_over}};
    int result = clickbox_main(argc, argv, &function);
    /* The counters went with the membership. */
    uint64_t unused = 0;
    tracker.ended = &unused;
    clickbox_flows_free(tracker.flows);
    return result;
}
