/* flows.c: headers of packets, and tables of flows. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IPV4 0x0800
#define IPV6 0x86dd
#define MAX_TAGS 4
#define MAX_EXTENSIONS 16
/* The most bytes of a packet in an ICMP error that are read. */
#define QUOTED 96
#define ICMP 1
#define TCP 6
#define UDP 17
#define ICMP6 58
#define SCTP 132

static unsigned big16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static int is_extension(unsigned protocol)
{
    return protocol == 0 || protocol == 43 || protocol == 44 || protocol == 51 || protocol == 60;
}

/* Finds the transport header of IPv6. Returns its offset, or 0 in a later fragment, or if it is cut off. */
static uint32_t skip_extensions(const uint8_t *bytes, uint32_t at, uint32_t end, uint8_t *protocol, int *is_fragment)
{
    for (int count = 0; count < MAX_EXTENSIONS && is_extension(*protocol); count++) {
        if (at + 8 > end)
            return 0;
        unsigned kind = *protocol, size = kind == 44 ? 8 : kind == 51 ? (bytes[at + 1] + 2u) * 4 : (bytes[at + 1] + 1u) * 8;
        *protocol = bytes[at];
        if (kind == 44) {
            unsigned place = big16(bytes + at + 2);
            *is_fragment |= (place & 0xfff9) != 0;
            if (place & 0xfff8)
                return 0;
        }
        at += size;
    }
    return at <= end ? at : 0;
}

/* The headers of a packet, and what flows need besides. */
struct parsed {
    struct clickbox_headers headers;
    const uint8_t *end; /* That of the IP packet. */
    int is_fragment;
};

/* Reads the IP header at `at`, whose Ethernet type is known. Returns -1 if there is none, or if it is cut off. */
static int read_ip(uint8_t *bytes, uint32_t at, uint32_t end, struct parsed *parsed)
{
    struct clickbox_headers *headers = &parsed->headers;
    uint32_t transport;
    if (headers->ether_type == IPV4 && at + 20 <= end && bytes[at] >> 4 == 4) {
        uint32_t size = (bytes[at] & 15u) * 4, total = big16(bytes + at + 2), place = big16(bytes + at + 6);
        if (size < 20 || at + size > end)
            return -1;
        /* What follows the packet is padding. */
        end = at + total < end ? at + total : end;
        headers->protocol = bytes[at + 9];
        transport = place & 0x1fff ? 0 : at + size;
        parsed->is_fragment = (place & 0x3fff) != 0;
        headers->version = 4;
    } else if (headers->ether_type == IPV6 && at + 40 <= end && bytes[at] >> 4 == 6) {
        uint32_t total = 40 + big16(bytes + at + 4);
        end = at + total < end ? at + total : end;
        headers->protocol = bytes[at + 6];
        transport = skip_extensions(bytes, at + 40, end, &headers->protocol, &parsed->is_fragment);
        headers->version = 6;
    } else {
        return -1;
    }
    headers->ip = bytes + at;
    headers->transport = transport == 0 || transport >= end ? NULL : bytes + transport;
    parsed->end = bytes + end;
    return 0;
}

/* Reads the headers of a packet up to that of IP. */
static int read_packet(const struct clickbox_packet *packet, struct parsed *parsed)
{
    const uint8_t *bytes = packet->data;
    uint32_t at = 14, end = packet->length;
    memset(parsed, 0, sizeof *parsed);
    if (end < at)
        return -1;
    unsigned type = big16(bytes + 12);
    for (int tags = 0; tags < MAX_TAGS && (type == 0x8100 || type == 0x88a8); tags++) {
        if (at + 4 > end)
            return -1;
        type = big16(bytes + at + 2);
        at += 4;
    }
    parsed->headers.ether_type = (uint16_t)type;
    if (read_ip(packet->data, at, end, parsed) < 0)
        return -1;
    const uint8_t *ip = parsed->headers.ip;
    return parsed->headers.version == 4 && big16(ip + 2) < (ip[0] & 15u) * 4 ? -1 : 0;
}

int clickbox_headers(const struct clickbox_packet *packet, struct clickbox_headers *headers)
{
    struct parsed parsed;
    int result = read_packet(packet, &parsed);
    *headers = parsed.headers;
    if (result < 0 || !headers->transport)
        return result;
    uint8_t *transport = headers->transport;
    size_t left = (size_t)(parsed.end - transport), size = 0;
    if (headers->protocol == TCP && left >= 20)
        size = (transport[12] >> 4) * 4u;
    else if (headers->protocol == UDP && left >= 8)
        size = 8;
    else if (headers->protocol != SCTP || left < 12)
        return 0;
    headers->source_port = (uint16_t)big16(transport);
    headers->destination_port = (uint16_t)big16(transport + 2);
    if (size >= 8 && size <= left) {
        headers->payload = transport + size;
        headers->payload_length = (uint32_t)(left - size);
    }
    return 0;
}

/* The type of an ICMP message, or -1 if the packet is none, or a fragment. */
static int message_type(const struct parsed *parsed)
{
    const struct clickbox_headers *headers = &parsed->headers;
    if (headers->protocol != (headers->version == 4 ? ICMP : ICMP6) || parsed->is_fragment)
        return -1;
    return headers->transport && parsed->end - headers->transport >= 8 ? headers->transport[0] : -1;
}

/* Reads the packet that an ICMP error is about. Returns -1 if the packet is no error, or quotes no whole IP header. */
static int read_quoted(const struct parsed *parsed, struct parsed *quoted)
{
    int type = message_type(parsed);
    int is_error = parsed->headers.version == 4 ? (type >= 3 && type <= 5) || type == 11 || type == 12 : type >= 1 && type <= 4;
    if (!is_error)
        return -1;
    uint8_t *bytes = parsed->headers.transport + 8;
    size_t left = (size_t)(parsed->end - bytes);
    memset(quoted, 0, sizeof *quoted);
    quoted->headers.ether_type = parsed->headers.ether_type;
    return read_ip(bytes, 0, left < QUOTED ? (uint32_t)left : QUOTED, quoted);
}

/* The ports that tell flows apart: those of TCP, UDP and SCTP; the identifier of ICMP echo messages as both. */
static void find_ports(const struct parsed *parsed, uint16_t ports[2])
{
    const uint8_t *transport = parsed->headers.transport;
    unsigned protocol = parsed->headers.protocol;
    int type = message_type(parsed);
    ports[0] = ports[1] = 0;
    if (parsed->headers.version == 4 ? type == 0 || type == 8 : type == 128 || type == 129) {
        ports[0] = ports[1] = (uint16_t)big16(transport + 4);
    } else if (transport && parsed->end - transport >= 4 && (protocol == TCP || protocol == UDP || protocol == SCTP)) {
        ports[0] = (uint16_t)big16(transport);
        ports[1] = (uint16_t)big16(transport + 2);
    }
}

/* The switch finds the same flow (flow_tuple.rs in the crate `flow-table`): it gives all packets of one to the same instance. */
int clickbox_flow(const struct clickbox_packet *packet, struct clickbox_flow *flow)
{
    struct parsed parsed, quoted;
    if (read_packet(packet, &parsed) < 0)
        return -1;
    int is_error = read_quoted(&parsed, &quoted) == 0;
    const struct parsed *of = is_error ? &quoted : &parsed;
    const uint8_t *ip = of->headers.ip;
    uint16_t ports[2];
    find_ports(of, ports);
    memset(flow, 0, sizeof *flow);
    flow->version = of->headers.version;
    flow->protocol = of->headers.protocol;
    size_t size = flow->version == 4 ? 4 : 16, source = flow->version == 4 ? 12 : 8;
    int order = memcmp(ip + source, ip + source + size, size);
    int reverse = order > 0 || (order == 0 && ports[0] > ports[1]);
    memcpy(flow->address[reverse], ip + source, size);
    memcpy(flow->address[!reverse], ip + source + size, size);
    flow->port[reverse] = ports[0];
    flow->port[!reverse] = ports[1];
    return reverse != is_error ? 2 : 1;
}

/* ---- Tables ---- */

#define NONE UINT32_MAX
#define FREE UINT64_MAX

/* An entry: the flow, its neighbours, and the state behind it. */
struct entry {
    struct clickbox_flow flow;
    uint32_t next;           /* In its chain, or in the list of free ones. */
    uint32_t older, younger; /* In the order of the last use. */
    uint64_t used;           /* FREE in a free one. */
};

struct clickbox_flows {
    uint8_t *entries;
    uint32_t *chains;
    size_t entry_size, bytes, capacity, count;
    uint32_t mask, oldest, youngest, free;
    uint64_t idle, secret;
    void (*forget)(const struct clickbox_flow *, void *, void *);
    void *state;
};

static struct entry *entry_at(const struct clickbox_flows *flows, uint32_t number)
{
    return (struct entry *)(flows->entries + number * flows->entry_size);
}

/* The secret makes it hard to find flows that share a chain. */
static uint32_t chain_of(const struct clickbox_flows *flows, const struct clickbox_flow *flow)
{
    uint64_t words[sizeof *flow / 8], hash = flows->secret;
    memcpy(words, flow, sizeof words);
    for (size_t at = 0; at < sizeof words / 8; at++) {
        hash = (hash ^ words[at]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) & flows->mask;
}

struct clickbox_flows *clickbox_flows_new(size_t count, size_t bytes, uint64_t idle_ns,
                                          void (*forget)(const struct clickbox_flow *, void *, void *), void *state)
{
    struct clickbox_flows *flows = calloc(1, sizeof *flows);
    uint32_t chains = 64;
    if (!flows || count == 0 || count > 1u << 28) {
        free(flows);
        clickbox_set_error("a table has 1 to 268,435,456 flows");
        return NULL;
    }
    while (chains < count)
        chains *= 2;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    *flows = (struct clickbox_flows){.bytes = bytes, .capacity = count, .mask = chains - 1, .oldest = NONE, .youngest = NONE,
                                     .idle = idle_ns, .forget = forget, .state = state};
    flows->secret = ((uint64_t)time.tv_nsec << 32 ^ (uint64_t)time.tv_sec ^ (uintptr_t)flows) * 0xff51afd7ed558ccdull;
    flows->entry_size = (sizeof(struct entry) + bytes + 15) / 16 * 16;
    flows->entries = calloc(count, flows->entry_size);
    flows->chains = malloc(chains * sizeof *flows->chains);
    if (!flows->entries || !flows->chains) {
        free(flows->entries);
        free(flows->chains);
        free(flows);
        clickbox_set_error("no memory is left");
        return NULL;
    }
    for (uint32_t at = 0; at < chains; at++)
        flows->chains[at] = NONE;
    for (uint32_t at = 0; at < count; at++) {
        entry_at(flows, at)->next = at + 1 < count ? at + 1 : NONE;
        entry_at(flows, at)->used = FREE;
    }
    return flows;
}

static void unlink_age(struct clickbox_flows *flows, struct entry *entry)
{
    *(entry->older == NONE ? &flows->oldest : &entry_at(flows, entry->older)->younger) = entry->younger;
    *(entry->younger == NONE ? &flows->youngest : &entry_at(flows, entry->younger)->older) = entry->older;
}

static void link_youngest(struct clickbox_flows *flows, uint32_t number)
{
    struct entry *entry = entry_at(flows, number);
    entry->older = flows->youngest;
    entry->younger = NONE;
    *(flows->youngest == NONE ? &flows->oldest : &entry_at(flows, flows->youngest)->younger) = number;
    flows->youngest = number;
}

static void remove_entry(struct clickbox_flows *flows, uint32_t number)
{
    struct entry *entry = entry_at(flows, number);
    uint32_t *place = &flows->chains[chain_of(flows, &entry->flow)];
    while (*place != number)
        place = &entry_at(flows, *place)->next;
    *place = entry->next;
    unlink_age(flows, entry);
    entry->next = flows->free;
    entry->used = FREE;
    flows->free = number;
    flows->count--;
}

static void forget_oldest(struct clickbox_flows *flows)
{
    struct entry *entry = entry_at(flows, flows->oldest);
    if (flows->forget)
        flows->forget(&entry->flow, entry + 1, flows->state);
    remove_entry(flows, flows->oldest);
}

static void forget_idle(struct clickbox_flows *flows, uint64_t now)
{
    while (flows->oldest != NONE && flows->idle && now > entry_at(flows, flows->oldest)->used &&
           now - entry_at(flows, flows->oldest)->used >= flows->idle)
        forget_oldest(flows);
}

static uint32_t find(const struct clickbox_flows *flows, const struct clickbox_flow *flow)
{
    uint32_t number = flows->chains[chain_of(flows, flow)];
    while (number != NONE && memcmp(&entry_at(flows, number)->flow, flow, sizeof *flow) != 0)
        number = entry_at(flows, number)->next;
    return number;
}

void *clickbox_flow_state(struct clickbox_flows *flows, const struct clickbox_flow *flow, uint64_t now, int *is_new)
{
    forget_idle(flows, now);
    uint32_t number = find(flows, flow);
    if (is_new)
        *is_new = number == NONE;
    if (number == NONE) {
        if (flows->count == flows->capacity)
            forget_oldest(flows);
        number = flows->free;
        struct entry *entry = entry_at(flows, number);
        flows->free = entry->next;
        memset(entry, 0, flows->entry_size);
        entry->flow = *flow;
        uint32_t *chain = &flows->chains[chain_of(flows, flow)];
        entry->next = *chain;
        *chain = number;
        flows->count++;
    } else {
        unlink_age(flows, entry_at(flows, number));
    }
    link_youngest(flows, number);
    entry_at(flows, number)->used = now;
    return entry_at(flows, number) + 1;
}

const void *clickbox_flow_take(struct clickbox_flows *flows, const struct clickbox_flow *flow)
{
    uint32_t number = find(flows, flow);
    if (number == NONE)
        return NULL;
    remove_entry(flows, number);
    return entry_at(flows, number) + 1;
}

uint64_t clickbox_flow_next(const struct clickbox_flows *flows, uint64_t position, struct clickbox_flow *flow)
{
    for (; position < flows->capacity; position++) {
        const struct entry *entry = entry_at(flows, (uint32_t)position);
        if (entry->used != FREE) {
            *flow = entry->flow;
            return position + 1;
        }
    }
    return 0;
}

size_t clickbox_flow_count(struct clickbox_flows *flows, uint64_t now)
{
    forget_idle(flows, now);
    return flows->count;
}

void clickbox_flows_free(struct clickbox_flows *flows)
{
    if (!flows)
        return;
    while (flows->oldest != NONE)
        forget_oldest(flows);
    free(flows->entries);
    free(flows->chains);
    free(flows);
}
