/* library.c: tests of what needs no service: headers, flows, tables of flows, and wrong packets. It prints nothing, and ends
 * with 0. */
#include "../clickbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct clickbox *box = clickbox_offline("/dev/null", NULL);
    CHECK(!box && strstr(clickbox_error(), "no capture"));
    CHECK(!clickbox_join("/nonexistent", NULL) && strstr(clickbox_error(), "/nonexistent"));
    return 0;
}
