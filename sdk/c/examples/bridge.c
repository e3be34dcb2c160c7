/* bridge.c: a learning bridge between the two faces of a service (--faces in=0,out=1).
 *
 * It remembers at which face each Ethernet address was seen. A packet to an address at the face that it came in is dropped; every
 * other packet goes on to the other face. An address is forgotten after five minutes.
 */
#include "clickbox.h"

#include <string.h>

#define ADDRESSES 4096
#define MAX_AGE 300000000000ull

struct entry {
    uint8_t address[6];
    uint8_t face, used;
    uint64_t seen;
};

struct bridge {
    struct entry table[ADDRESSES];
    uint64_t *filtered, *learned;
};

static struct entry *find(struct bridge *bridge, const uint8_t *address)
{
    uint32_t hash = 2166136261u;
    for (int at = 0; at < 6; at++)
        hash = (hash ^ address[at]) * 16777619u;
    /* Two addresses with one place displace each other: the worst that happens is a packet too many. */
    return &bridge->table[hash % ADDRESSES];
}

static int is_known(const struct entry *entry, const uint8_t *address, uint64_t now)
{
    return entry->used && memcmp(entry->address, address, 6) == 0 && now - entry->seen < MAX_AGE;
}

static int start(struct clickbox *box, void *state)
{
    struct bridge *bridge = state;
    bridge->filtered = clickbox_counter(box, "filtered");
    bridge->learned = clickbox_counter(box, "learned");
    return 0;
}

static clickbox_answer decide(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct bridge *bridge = state;
    uint64_t now = clickbox_now(box);
    if (packet->length < 14)
        return CLICKBOX_DROP;
    const uint8_t *destination = packet->data, *source = packet->data + 6;
    if (!(source[0] & 1)) {
        struct entry *entry = find(bridge, source);
        *bridge->learned += !is_known(entry, source, now);
        memcpy(entry->address, source, 6);
        entry->face = packet->face;
        entry->used = 1;
        entry->seen = now;
    }
    struct entry *known = find(bridge, destination);
    if (!(destination[0] & 1) && is_known(known, destination, now) && known->face == packet->face) {
        ++*bridge->filtered;
        return CLICKBOX_DROP;
    }
    return CLICKBOX_NEXT;
}

int main(int argc, char **argv)
{
    static struct bridge bridge;
    struct clickbox_function function = {.packet = decide, .start = start, .state = &bridge};
    return clickbox_main(argc, argv, &function);
}
