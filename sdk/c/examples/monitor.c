/* monitor.c: counts packets and bytes by protocol, and prints the rates once a second. */
#include "clickbox.h"

#include <stdio.h>

struct monitor {
    uint64_t *packets, *bytes, *tcp, *udp, *icmp, *other;
    uint64_t last_packets, last_bytes, last_time;
};

static int start(struct clickbox *box, void *state)
{
    struct monitor *monitor = state;
    monitor->packets = clickbox_counter(box, "packets");
    monitor->bytes = clickbox_counter(box, "bytes");
    monitor->tcp = clickbox_counter(box, "tcp");
    monitor->udp = clickbox_counter(box, "udp");
    monitor->icmp = clickbox_counter(box, "icmp");
    monitor->other = clickbox_counter(box, "other");
    monitor->last_packets = monitor->last_bytes = 0;
    monitor->last_time = clickbox_now(box);
    return 0;
}

static clickbox_answer look(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct monitor *monitor = state;
    struct clickbox_headers headers;
    (void)box;
    ++*monitor->packets;
    *monitor->bytes += packet->length;
    int protocol = clickbox_headers(packet, &headers) < 0 ? -1 : headers.protocol;
    switch (protocol) {
    case 6:
        ++*monitor->tcp;
        break;
    case 17:
        ++*monitor->udp;
        break;
    case 1:
    case 58:
        ++*monitor->icmp;
        break;
    default:
        ++*monitor->other;
    }
    return CLICKBOX_NEXT;
}

static void print(struct clickbox *box, void *state)
{
    struct monitor *monitor = state;
    uint64_t now = clickbox_now(box), passed = now - monitor->last_time;
    if (passed == 0)
        return;
    double seconds = (double)passed / 1e9;
    double packets = (double)(*monitor->packets - monitor->last_packets) / seconds;
    double bits = (double)(*monitor->bytes - monitor->last_bytes) * 8 / seconds;
    fprintf(stderr, "%s: %.0f packets/s, %.3f Mb/s\n", clickbox_name(box), packets, bits / 1e6);
    monitor->last_packets = *monitor->packets;
    monitor->last_bytes = *monitor->bytes;
    monitor->last_time = now;
}

int main(int argc, char **argv)
{
    struct monitor monitor;
    struct clickbox_function function = {.packet = look, .start = start, .tick = print, .state = &monitor};
    return clickbox_main(argc, argv, &function);
}
