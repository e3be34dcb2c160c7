/* firewall.c: allows or drops packets by the longest prefix of their IPv4 destination.
 *
 * The rules are in the file $RULES, one a line: `10.1.0.0/16 drop` or `0.0.0.0/0 allow`. Without a rule, a packet is allowed.
 * Packets that are not IPv4 pass.
 */
#include "clickbox.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 1000000

enum verdict { NONE, ALLOW, REFUSE };

/* A binary tree of prefixes: node 0 is the empty one. */
struct node {
    uint32_t child[2];
    enum verdict verdict;
};

struct firewall {
    struct node *nodes;
    uint32_t count;
    uint64_t *allowed, *dropped;
};

static int add(struct firewall *firewall, uint32_t address, unsigned length, enum verdict verdict)
{
    uint32_t at = 0;
    for (unsigned bit = 0; bit < length; bit++) {
        uint32_t *next = &firewall->nodes[at].child[address >> (31 - bit) & 1];
        if (!*next) {
            if (firewall->count == MAX_NODES)
                return -1;
            *next = firewall->count++;
        }
        at = *next;
    }
    firewall->nodes[at].verdict = verdict;
    return 0;
}

static enum verdict look_up(const struct firewall *firewall, uint32_t address)
{
    enum verdict found = firewall->nodes[0].verdict;
    uint32_t at = 0;
    for (unsigned bit = 0; bit < 32; bit++) {
        at = firewall->nodes[at].child[address >> (31 - bit) & 1];
        if (!at)
            break;
        if (firewall->nodes[at].verdict != NONE)
            found = firewall->nodes[at].verdict;
    }
    return found;
}

static int read_rule(struct firewall *firewall, const char *line)
{
    char prefix[64], verdict[16];
    unsigned length;
    struct in_addr address;
    if (sscanf(line, "%63[0-9.]/%u %15s", prefix, &length, verdict) != 3 || length > 32)
        return -1;
    if (inet_pton(AF_INET, prefix, &address) != 1)
        return -1;
    if (strcmp(verdict, "allow") == 0)
        return add(firewall, ntohl(address.s_addr), length, ALLOW);
    if (strcmp(verdict, "drop") == 0)
        return add(firewall, ntohl(address.s_addr), length, REFUSE);
    return -1;
}

static int read_rules(struct firewall *firewall, const char *path)
{
    char line[256];
    unsigned number = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return -1;
    }
    while (fgets(line, sizeof line, file)) {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (read_rule(firewall, line) < 0) {
            fprintf(stderr, "%s:%u: expected a line such as `10.1.0.0/16 drop`\n", path, number);
            fclose(file);
            return -1;
        }
    }
    fclose(file);
    return 0;
}

static int start(struct clickbox *box, void *state)
{
    struct firewall *firewall = state;
    firewall->allowed = clickbox_counter(box, "allowed");
    firewall->dropped = clickbox_counter(box, "dropped");
    return 0;
}

static clickbox_answer filter(struct clickbox *box, struct clickbox_packet *packet, void *state)
{
    struct firewall *firewall = state;
    struct clickbox_headers headers;
    uint32_t address;
    (void)box;
    if (clickbox_headers(packet, &headers) < 0 || headers.version != 4)
        return CLICKBOX_NEXT;
    memcpy(&address, headers.ip + 16, 4);
    if (look_up(firewall, ntohl(address)) == REFUSE) {
        ++*firewall->dropped;
        return CLICKBOX_DROP;
    }
    ++*firewall->allowed;
    return CLICKBOX_NEXT;
}

int main(int argc, char **argv)
{
    const char *rules = getenv("RULES");
    struct firewall firewall = {.nodes = calloc(MAX_NODES, sizeof(struct node)), .count = 1};
    if (!rules || !firewall.nodes) {
        fprintf(stderr, "set RULES to a file with rules such as `10.1.0.0/16 drop`\n");
        return 2;
    }
    if (read_rules(&firewall, rules) < 0)
        return 2;
    struct clickbox_function function = {.packet = filter, .start = start, .state = &firewall};
    return clickbox_main(argc, argv, &function);
}
