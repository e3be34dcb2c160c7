/* library.c: tests of what needs no service: headers, flows, tables of flows, and wrong packets. It prints nothing, and ends
 * with 0. */
#define _GNU_SOURCE
#include "../internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ICMP 1
#define ICMP6 58

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

/* A UDP packet over IPv4, with this number of VLAN tags. */
static uint32_t make(uint8_t *bytes, unsigned tags, uint8_t from, uint8_t to, unsigned from_port, unsigned to_port)
{
    uint32_t at = 12;
    memset(bytes, 0, 128);
    for (unsigned tag = 0; tag < tags; tag++, at += 4)
        memcpy(bytes + at, (uint8_t[]){0x81, 0, 0, 7}, 4);
    memcpy(bytes + at, (uint8_t[]){8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to}, 22);
    at += 22;
    memcpy(bytes + at, (uint8_t[]){(uint8_t)(from_port >> 8), (uint8_t)from_port, (uint8_t)(to_port >> 8), (uint8_t)to_port, 0, 12}, 6);
    return at + 12;
}

static void check_headers(void)
{
    uint8_t bytes[128];
    struct clickbox_headers headers;
    for (unsigned tags = 0; tags < 3; tags++) {
        struct clickbox_packet packet = {.data = bytes, .length = make(bytes, tags, 1, 2, 1000, 53) + 5};
        CHECK(clickbox_headers(&packet, &headers) == 0);
        CHECK(headers.version == 4 && headers.protocol == 17 && headers.ether_type == 0x0800);
        CHECK(headers.source_port == 1000 && headers.destination_port == 53);
        /* The five bytes behind the packet are padding. */
        CHECK(headers.payload == bytes + 14 + 4 * tags + 28 && headers.payload_length == 4);
        /* A fragment that is not the first has no ports. */
        headers.ip[7] = 1;
        CHECK(clickbox_headers(&packet, &headers) == 0 && !headers.transport && headers.source_port == 0);
    }
    /* Any bytes, and any prefix of a packet, whose bytes behind the end must not be read. */
    uint32_t random = 1;
    for (int round = 0; round < 200000; round++) {
        uint32_t length = (random >> 8) % 100;
        uint8_t *exact = malloc(length + 1);
        CHECK(exact);
        make(bytes, random % 3, 1, 2, 3, 4);
        for (int change = 0; change < 4; change++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % 60] = (uint8_t)(random >> 24);
        }
        if (random & 64)
            memcpy(bytes + 12, (uint8_t[]){0x86, 0xdd, 0x60}, 3);
        memcpy(exact, bytes, length);
        struct clickbox_packet packet = {.data = exact, .length = length};
        struct clickbox_flow flow;
        if (clickbox_headers(&packet, &headers) == 0 && headers.payload)
            CHECK(headers.payload >= exact && headers.payload + headers.payload_length <= exact + length);
        clickbox_flow(&packet, &flow);
        free(exact);
        random = random * 1664525 + 1013904223;
    }
}

struct forgotten {
    unsigned count;
    uint64_t sum;
};

static void forget(const struct clickbox_flow *flow, void *bytes, void *state)
{
    struct forgotten *forgotten = state;
    (void)flow;
    forgotten->count++;
    forgotten->sum += *(uint64_t *)bytes;
}

static void check_flows(void)
{
    uint8_t bytes[128];
    struct clickbox_flow there, back, flow;
    struct clickbox_packet packet = {.data = bytes, .length = make(bytes, 0, 1, 2, 1000, 53)};
    CHECK(clickbox_flow(&packet, &there) == 1);
    packet.length = make(bytes, 1, 2, 1, 53, 1000);
    CHECK(clickbox_flow(&packet, &back) == 2 && memcmp(&there, &back, sizeof there) == 0);
    CHECK(there.port[0] == 1000 && there.port[1] == 53 && there.address[0][3] == 1 && there.address[1][3] == 2);

    struct forgotten forgotten = {0, 0};
    struct clickbox_flows *flows = clickbox_flows_new(100, sizeof(uint64_t), 1000, forget, &forgotten);
    int is_new;
    CHECK(flows);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned port = 0; port < 100; port++) {
            packet.length = make(bytes, 0, 1, 2, port, 53);
            CHECK(clickbox_flow(&packet, &flow) > 0);
            uint64_t *state = clickbox_flow_state(flows, &flow, 10 * round, &is_new);
            CHECK(is_new == (round == 0) && *state == round * (uint64_t)port);
            *state += port;
        }
    CHECK(clickbox_flow_count(flows, 30) == 100 && forgotten.count == 0);
    /* All flows are listed once. One that was taken is not there any more, and has its state back when that is taken over. */
    uint64_t position = 0, sum = 0, listed = 0;
    while ((position = clickbox_flow_next(flows, position, &flow)) != 0)
        sum += flow.port[0], listed++;
    CHECK(listed == 100 && sum == 99 * 100 / 2);
    CHECK(clickbox_flow_next(flows, 0, &flow) == 1);
    const uint64_t *taken = clickbox_flow_take(flows, &flow);
    CHECK(taken && *taken == 3 * (uint64_t)flow.port[0] && !clickbox_flow_take(flows, &flow));
    CHECK(clickbox_flow_count(flows, 30) == 99 && clickbox_flow_next(flows, 0, &back) == 2);
    sum = *taken;
    *(uint64_t *)clickbox_flow_state(flows, &flow, 5, &is_new) = sum;
    CHECK(is_new && clickbox_flow_count(flows, 30) == 100 && forgotten.count == 0);
    for (unsigned port = 0; port < 100; port++) {
        make(bytes, 0, 1, 2, port, 53);
        CHECK(clickbox_flow(&packet, &flow) > 0 && *(uint64_t *)clickbox_flow_state(flows, &flow, 20, NULL) == 3 * port);
    }
    /* The flow that was idle longest makes room: that of port 0, as port 1 is used first. */
    make(bytes, 0, 1, 2, 0, 53);
    CHECK(clickbox_flow(&packet, &flow) > 0);
    clickbox_flow_state(flows, &flow, 40, &is_new);
    make(bytes, 0, 1, 2, 5000, 53);
    CHECK(!is_new && clickbox_flow(&packet, &flow) > 0);
    CHECK(*(uint64_t *)clickbox_flow_state(flows, &flow, 50, &is_new) == 0 && is_new);
    CHECK(forgotten.count == 1 && forgotten.sum == 3);
    /* Those without packets are forgotten: all but the two that were used since. */
    CHECK(clickbox_flow_count(flows, 1025) == 2 && forgotten.count == 99);
    CHECK(forgotten.sum == 3 * 99 * 100 / 2);
    clickbox_flows_free(flows);
    CHECK(forgotten.count == 101);
}

/* Checks the flow of a message between 10.0.0.1 and `to`: its way, its protocol, and the ports at both ends. */
static void check_message(const uint8_t *message, size_t length, unsigned protocol, uint8_t to, int way, unsigned of, unsigned one,
                          unsigned other)
{
    uint8_t bytes[128];
    struct clickbox_flow flow;
    struct clickbox_packet packet = {.data = bytes, .length = (uint32_t)(34 + length)};
    make(bytes, 0, 9, 1, 0, 0);
    bytes[17] = (uint8_t)(20 + length);
    bytes[23] = (uint8_t)protocol;
    memcpy(bytes + 34, message, length);
    CHECK(clickbox_flow(&packet, &flow) == way && flow.protocol == of && flow.version == 4);
    CHECK(flow.address[0][3] == 1 && flow.address[1][3] == to && flow.port[0] == one && flow.port[1] == other);
}

/* Flows of packets without ports are those that the switch knows. */
static void check_messages(void)
{
    uint8_t bytes[128], error[64] = {11}, *quoted = error + 8;
    struct clickbox_flow flow, same;
    struct clickbox_packet packet = {.data = bytes};
    for (unsigned type = 0; type < 256; type++) {
        uint8_t message[8] = {(uint8_t)type, 0, 0, 0, 1, 5, 0, 3};
        unsigned identifier = type == 0 || type == 8 ? 0x105 : 0;
        check_message(message, 8, ICMP, 9, 2, ICMP, identifier, identifier);
        check_message(message, 8, 47, 9, 2, 47, 0, 0);
        /* ICMPv6 over IPv4 is no ICMP. */
        check_message(message, 8, ICMP6, 9, 2, ICMP6, 0, 0);
    }
    /* An error about a packet from 10.0.0.1 to 10.0.0.2, of which it has the first eight bytes behind the header. */
    make(bytes, 0, 1, 2, 1000, 53);
    memcpy(quoted, bytes + 14, 28);
    for (unsigned type = 0; type < 256; type++) {
        int is_error = (type >= 3 && type <= 5) || type == 11 || type == 12;
        error[0] = (uint8_t)type;
        if (is_error)
            check_message(error, 36, ICMP, 2, 2, 17, 1000, 53);
        else
            check_message(error, 36, ICMP, 9, 2, ICMP, 0, 0);
    }
    error[0] = 3;
    quoted[9] = 6;
    check_message(error, 36, ICMP, 2, 2, 6, 1000, 53);
    /* Of less than a header it says nothing; without ports, and as a later fragment, the packet has none. */
    check_message(error, 27, ICMP, 9, 2, ICMP, 0, 0);
    check_message(error, 28, ICMP, 2, 2, 6, 0, 0);
    quoted[7] = 9;
    check_message(error, 36, ICMP, 2, 2, 6, 0, 0);
    quoted[7] = 0;
    memcpy(quoted + 20, (uint8_t[]){8, 0, 0, 0, 1, 5, 0, 3}, 8);
    quoted[9] = ICMP;
    check_message(error, 36, ICMP, 2, 2, ICMP, 0x105, 0x105);
    /* Fragments of messages have no identifier, because only the first one could have it. */
    for (unsigned fragment = 0; fragment < 3; fragment++) {
        packet.length = make(bytes, 0, 1, 2, 0x800, 0);
        bytes[23] = ICMP;
        bytes[39] = 7;
        bytes[20] = fragment == 1 ? 0x20 : 0;
        bytes[21] = fragment == 2;
        CHECK(clickbox_flow(&packet, &flow) == 1 && flow.port[0] == (fragment == 0 ? 7 : 0) && flow.port[1] == flow.port[0]);
    }
    /* An echo request over IPv6, the reply, and an error about the request that a router sent back. */
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes + 12, (uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, ICMP6, 64}, 10);
    bytes[37] = 1, bytes[53] = 2, bytes[54] = 128, bytes[59] = 7;
    packet.length = 62;
    CHECK(clickbox_flow(&packet, &flow) == 1 && flow.version == 6 && flow.port[0] == 7 && flow.port[1] == 7);
    bytes[37] = 2, bytes[53] = 1, bytes[54] = 129;
    CHECK(clickbox_flow(&packet, &same) == 2 && memcmp(&flow, &same, sizeof flow) == 0);
    bytes[37] = 1, bytes[53] = 2, bytes[54] = 128;
    memmove(bytes + 62, bytes + 14, 48);
    bytes[19] = 56, bytes[37] = 9, bytes[53] = 1, bytes[54] = 3;
    packet.length = 110;
    CHECK(clickbox_flow(&packet, &same) == 2 && memcmp(&flow, &same, sizeof flow) == 0);
}

static uint64_t next(struct clickbox *box, uint64_t position, struct clickbox_flow *flow, void *state)
{
    (void)box;
    return clickbox_flow_next(state, position, flow);
}

static int export_flow(struct clickbox *box, const struct clickbox_flow *flow, void *bytes, void *state)
{
    const uint64_t *taken = clickbox_flow_take(state, flow);
    (void)box;
    if (taken)
        memcpy(bytes, taken, sizeof *taken);
    return taken ? (int)sizeof *taken : -1;
}

static int import_flow(struct clickbox *box, const struct clickbox_flow *flow, const void *bytes, size_t length, void *state)
{
    (void)box;
    if (length != sizeof(uint64_t))
        return -1;
    memcpy(clickbox_flow_state(state, flow, 0, NULL), bytes, length);
    return 0;
}

/* Asks for the state of flows. Returns the length of the answer behind its number. */
static size_t ask(struct clickbox *box, int other, unsigned kind, const uint8_t *bytes, size_t length, uint8_t *answer)
{
    uint8_t message[MESSAGE_SIZE];
    /* No byte is behind the request. */
    box->request = malloc(16 + length);
    CHECK(box->request);
    memset(box->request, 0, 16);
    put16(box->request, (uint16_t)kind);
    put32(box->request + 8, 77);
    if (length > 0)
        memcpy(box->request + 16, bytes, length);
    box->request_length = 16 + length;
    clickbox_answer_request(box);
    free(box->request);
    ssize_t count = recv(other, message, sizeof message, 0);
    CHECK(count >= 16 && get16(message) == 5 && get32(message + 4) == (size_t)count && get32(message + 8) == 77);
    memcpy(answer, message + 16, (size_t)count - 16);
    return (size_t)count - 16;
}

/* States of flows go from one table to another one, whatever is cut off. */
static void check_hand_over(void)
{
    uint8_t bytes[128], request[MESSAGE_SIZE] = {0}, answer[MESSAGE_SIZE];
    int ends[2];
    struct clickbox_flow flow, found;
    struct clickbox_packet packet = {.data = bytes, .length = 128};
    struct clickbox_flows *tables[2];
    struct clickbox_hand_over own[2];
    struct clickbox *boxes[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    for (int side = 0; side < 2; side++) {
        tables[side] = clickbox_flows_new(100, sizeof(uint64_t), 0, NULL, NULL);
        boxes[side] = calloc(1, sizeof *boxes[side]);
        CHECK(tables[side] && boxes[side]);
        own[side] = (struct clickbox_hand_over){.version = 1, .size = 8, .next = next, .export_flow = export_flow,
                                                .import_flow = import_flow, .state = tables[side]};
        boxes[side]->hand_over = &own[side];
        boxes[side]->control = ends[0];
    }
    for (unsigned number = 0; number < 4; number++) {
        make(bytes, 0, 1, 2, 1000 + number, 53);
        if (number == 2) {
            /* A ping with this identifier. */
            memcpy(bytes + 34, (uint8_t[]){8, 0, 0, 0, 1002 >> 8, 1002 & 255}, 6);
            bytes[23] = 1;
        }
        if (number == 3)
            memcpy(bytes + 12, (uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, 0, 74, 17, 64, 1, 2, 3}, 13);
        CHECK(clickbox_flow(&packet, &flow) > 0);
        *(uint64_t *)clickbox_flow_state(tables[0], &flow, 0, NULL) = 100 + number;
    }
    put32(request + 12, 128);
    size_t length = ask(boxes[0], ends[1], LIST_STATES, request, 28, answer);
    CHECK(length == 20 + 4 * 44 + 4 && get32(answer) == 0 && get32(answer + 16) == 4);
    put32(request + 12, 2);
    CHECK(ask(boxes[0], ends[1], LIST_STATES, request, 28, answer + 2048) == 20 + 2 * 44 + 4);
    CHECK(get32(answer + 2048) == 1 && get64(answer + 2048 + 8) == 2);
    /* The flows of the first list, and one that is not there. */
    memset(request, 0, sizeof request);
    put32(request + 12, 5);
    memcpy(request + 16, answer + 20, 4 * 44);
    put32(request + 16 + 4 * 44, 1);
    length = ask(boxes[0], ends[1], EXPORT_STATES, request, 16 + 5 * 44, answer);
    CHECK(get32(answer) == 1 && get32(answer + 4) == 5 && get32(answer + 8) == 4 && length == 12 + 4 * 104);
    CHECK(clickbox_flow_count(tables[0], 0) == 0);
    memcpy(request + 4, answer + 8, length - 8);
    length -= 4;
    own[1].version = 2;
    CHECK(ask(boxes[1], ends[1], IMPORT_STATES, request, length, answer) == 4 + 4 * (8 + 34) && get32(answer) == 4);
    CHECK(memcmp(answer + 12, "the state has version 1, and not 2", 34) == 0 && clickbox_flow_count(tables[1], 0) == 0);
    own[1].version = 1;
    for (size_t cut = 0; cut < length; cut++) {
        ask(boxes[1], ends[1], LIST_STATES, request, cut, answer);
        ask(boxes[1], ends[1], EXPORT_STATES, request, cut, answer);
        ask(boxes[1], ends[1], IMPORT_STATES, request, cut, answer);
    }
    CHECK(ask(boxes[1], ends[1], IMPORT_STATES, request, length, answer) == 4 && get32(answer) == 0);
    CHECK(clickbox_flow_count(tables[1], 0) == 4);
    for (uint64_t position = 0, states = 0; (position = clickbox_flow_next(tables[1], position, &found)) != 0;) {
        uint64_t state = *(uint64_t *)clickbox_flow_state(tables[1], &found, 0, NULL);
        CHECK(found.version == (state == 103 ? 6 : 4) && (state == 103 || found.port[0] == 900 + state));
        CHECK(state == 103 || (found.address[0][3] == 1 && found.address[1][3] == 2));
        CHECK((states += state) <= 100 + 101 + 102 + 103);
    }
    CHECK(memcmp(&found, &flow, sizeof flow) == 0);
    for (int side = 0; side < 2; side++) {
        clickbox_flows_free(tables[side]);
        free(boxes[side]);
        close(ends[side]);
    }
}

static void check_answers(void)
{
    CHECK(clickbox_with_flow(7 << 3 | 5) == (7 << 3 | 6));
    CHECK(clickbox_with_flow(7 << 3 | 1) == CLICKBOX_NOWHERE && clickbox_with_flow(CLICKBOX_NOWHERE) == CLICKBOX_NOWHERE);
}

static clickbox_answer spoil(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    switch ((*(unsigned *)state)++) {
    case 0:
        packet->length = 60000;
        break;
    case 1:
        packet->data += CLICKBOX_PACKET_SIZE;
        break;
    case 2:
        packet->data -= CLICKBOX_PACKET_SIZE;
        break;
    case 3:
        packet->data = NULL;
        break;
    case 4:
        /* The answer is for a packet that the function no longer has. */
        CHECK(clickbox_send(box, packet, CLICKBOX_NEXT) == 0);
        break;
    }
    return CLICKBOX_NEXT;
}

/* Packets that are too long or outside of their buffers are dropped, and what is sent twice leaves once. */
static void check_wrong_packets(void)
{
    const char *read = "wrong.pcap", *written = "right.pcap";
    uint32_t header[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1}, record[4] = {0, 0, 60, 60};
    uint8_t bytes[128];
    unsigned packets = 0;
    make(bytes, 0, 1, 2, 1000, 53);
    FILE *file = fopen(read, "wb");
    CHECK(file && fwrite(header, sizeof header, 1, file) == 1);
    for (unsigned number = 0; number < 6; number++)
        CHECK(fwrite(record, sizeof record, 1, file) == 1 && fwrite(bytes, 60, 1, file) == 1);
    CHECK(fclose(file) == 0);
    struct clickbox *box = clickbox_offline(read, written);
    struct clickbox_function function = {.packet = spoil, .state = &packets};
    CHECK(box && clickbox_run(box, &function) == 0 && packets == 6);
    clickbox_leave(box);
    file = fopen(written, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0 && ftell(file) == 24 + 2 * (16 + 60));
    CHECK(fclose(file) == 0 && remove(read) == 0 && remove(written) == 0);
}

int main(void)
{
    check_wrong_packets();
    check_answers();
    check_headers();
    check_flows();
    check_messages();
    check_hand_over();
    struct clickbox *box = clickbox_offline("/dev/null", NULL);
    CHECK(!box && strstr(clickbox_error(), "no capture"));
    CHECK(!clickbox_join("/nonexistent", NULL) && strstr(clickbox_error(), "/nonexistent"));
    return 0;
}
