// A broadband remote access server (BRAS): terminates the PPPoE sessions of subscribers and routes their packets.
//
// A session frame has an Ethernet header (14 bytes, type 8864), a PPPoE header (6 bytes: version, code, session,
// length) and a PPP header (2 bytes: 0021 for IPv4). The session number identifies the subscriber. The subscriber's
// packet is decapsulated, checked, routed, and sent on in a plain Ethernet frame. PPPoE discovery frames (type 8863)
// and PPP control frames belong to the control plane; this example only counts them.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 8864  1100 0017 002c 0021  4500 002a 0001 0000 4011 acb5 0a010203 c0000209  9c40 0035 0016 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> kind :: Classifier(12/8864 14/1100 20/0021, 12/8863, 12/8864, -)
    -> sessions :: Classifier(16/0017, 16/0018, 16/0019, -);
kind [1] -> control :: Counter -> Discard;
kind [2] -> control;
kind [3] -> other :: Counter -> Discard;

subscribers :: Strip(22)
    -> CheckIPHeader
    -> routes :: RadixIPLookup(0.0.0.0/0 192.0.2.1 0, 10.0.0.0/8 1);
sessions [0] -> subscribers;
sessions [1] -> subscribers;
sessions [2] -> subscribers;
sessions [3] -> unknown :: Counter -> Discard;

routes [0]
    -> ttl :: DecIPTTL
    -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:01:01)
    -> out :: Counter
    -> Discard;
// From one subscriber to another. A complete BRAS would encapsulate these packets in PPPoE again.
routes [1] -> local :: Counter -> Discard;
ttl [1] -> expired :: Counter -> Discard;
