// The data path of an IPv4 router with three interfaces.
//
// The steps for an IPv4 frame:
// 1. Remove the Ethernet header, and check the IP header.
// 2. Choose the interface by the longest prefix in `routes` that matches the destination.
// 3. Decrement the time to live. If it expires, a complete router would reply with ICMPError; this example counts the
//    packet.
// 4. Add a new Ethernet header.
//
// A route is PREFIX [GATEWAY] OUTPUT. The router's own addresses are left out, so only transit traffic is handled.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

elementclass Interface { $mac, $next |
    // Input 0: IP packets annotated with their next hop. Output 0: frames. Output 1: packets with expired time to live.
    input -> ttl :: DecIPTTL -> EtherEncap(0x0800, $mac, $next) -> output;
    ttl [1] -> [1] output;
}

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> kind :: Classifier(12/0800, -)
    -> Strip(14)
    -> CheckIPHeader
    -> routes :: RadixIPLookup(0.0.0.0/0 192.0.2.1 0, 10.0.0.0/8 1, 172.16.0.0/12 2);
kind [1] -> other :: Counter -> Discard;

expired :: Counter -> Discard;
routes [0] -> uplink :: Interface(02:00:00:00:01:00, 02:00:00:00:01:01) -> out :: Counter -> Discard;
routes [1] -> east :: Interface(02:00:00:00:02:00, 02:00:00:00:02:01) -> out;
routes [2] -> west :: Interface(02:00:00:00:03:00, 02:00:00:00:03:01) -> out;
uplink [1] -> expired;
east [1] -> expired;
west [1] -> expired;
