/* load.c: sends UDP packets to a service or a port, and measures how long those take that come back.
 *
 * It sends $COUNT packets (default: 100,000) of $SIZE bytes (default: 64) to $TO, such as `nf` or `port:wan0`, at $RATE a second
 * (default: 100,000), from 32 source ports to port 9. The switch has to send them back here:
 *
 *     clickbox service create load --container --may-send-to nf
 *     clickbox chain create back load --to wan0
 *     clickbox flow add lan --match 'udp dst port 9' --chain back
 *
 * It has a loop of its own, in place of callbacks.
 */
#include "clickbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
#define HEADERS (14 + 20 + 8)
#define BUCKETS 10000 /* Of 100 ns each. */

static unsigned long setting(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Writes a packet with its number, and the time in its payload if there is room. */
static void write_packet(struct clickbox_packet *packet, uint32_t number, uint64_t now)
{
    static const uint8_t start[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0};
    uint8_t *bytes = packet->data, *ip = bytes + 14;
    unsigned sum = 0;
    memset(bytes, 0, packet->length);
    memcpy(bytes, start, sizeof start);
    put16(ip + 2, packet->length - 14);
    ip[8] = 64;
    ip[9] = 17;
    memcpy(ip + 12, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
    for (int at = 0; at < 20; at += 2)
        sum += (unsigned)ip[at] << 8 | ip[at + 1];
    put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
    put16(ip + 20, 1024 + number % 32);
    put16(ip + 22, 9);
    put16(ip + 24, packet->length - 34);
    memcpy(bytes + HEADERS, &now, sizeof now);
}

struct results {
    uint64_t received, sum, most, bucket[BUCKETS];
};

static void note(struct results *results, const struct clickbox_packet *packet, uint64_t now)
{
    uint64_t sent;
    if (packet->length < HEADERS + sizeof sent)
        return;
    memcpy(&sent, packet->data + HEADERS, sizeof sent);
    uint64_t time = now > sent ? now - sent : 0;
    results->received++;
    results->sum += time;
    results->most = time > results->most ? time : results->most;
    results->bucket[time / 100 < BUCKETS ? time / 100 : BUCKETS - 1]++;
}

static double percentile(const struct results *results, double part)
{
    uint64_t below = 0;
    for (int at = 0; at < BUCKETS; at++) {
        below += results->bucket[at];
        if ((double)below >= part * (double)results->received)
            return at / 10.0;
    }
    return BUCKETS / 10.0;
}

int main(int argc, char **argv)
{
    static struct results results;
    struct clickbox_packet packets[MOST];
    struct clickbox_options options = {.spin_us = (uint32_t)setting("SPIN", 50)};
    unsigned long count = setting("COUNT", 100000), rate = setting("RATE", 100000), size = setting("SIZE", 64);
    const char *to = getenv("TO");
    struct clickbox *box = to && rate > 0 ? clickbox_join(argc > 1 ? argv[1] : NULL, &options) : NULL;
    if (!box) {
        fprintf(stderr, "%s: %s\n", argv[0], to ? clickbox_error() : "set TO to a service, or to port:NAME");
        return 1;
    }
    clickbox_answer answer = clickbox_destination(box, to);
    if (answer == CLICKBOX_NOWHERE) {
        fprintf(stderr, "the service may not send to %s: create it with --may-send-to\n", to);
        return 2;
    }
    size = size < HEADERS + 8 ? HEADERS + 8 : size;
    uint64_t begin = clickbox_now(box), last = begin, *sent = clickbox_counter(box, "sent");
    uint64_t *received = clickbox_counter(box, "received");
    /* Ends when nothing came back for a second. */
    while (*sent < count || clickbox_now(box) - last < 1000000000ull) {
        int taken = clickbox_receive(box, packets, MOST, *sent < count ? 0 : 100);
        uint64_t now = clickbox_now(box), due = (now - begin) / 1000 * rate / 1000000;
        if (taken < 0) {
            fprintf(stderr, "%s\n", clickbox_error());
            return 1;
        }
        for (int at = 0; at < taken; at++) {
            note(&results, &packets[at], now);
            clickbox_send(box, &packets[at], CLICKBOX_DROP);
            last = now;
        }
        *received = results.received;
        for (int at = 0; at < MOST && *sent < count && *sent < due; at++) {
            struct clickbox_packet packet;
            if (clickbox_new(box, &packet, (uint32_t)size) < 0)
                break;
            write_packet(&packet, (uint32_t)*sent, now);
            clickbox_send(box, &packet, answer);
            ++*sent;
            last = now;
        }
    }
    double mean = results.received ? (double)results.sum / (double)results.received / 1e3 : 0;
    printf("sent %llu received %llu mean_us %.2f p50_us %.1f p99_us %.1f max_us %.1f\n", (unsigned long long)*sent,
           (unsigned long long)results.received, mean, percentile(&results, 0.5), percentile(&results, 0.99),
           (double)results.most / 1e3);
    clickbox_leave(box);
    return 0;
}
