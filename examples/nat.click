// Network address translation: hosts of 10.0.0.0/8 share one public address.
//
// Packets from inside enter the rewriter at input 0. A new flow gets a port of its own. Packets from outside enter at
// input 1; those that belong to no flow are dropped. Output 0 leads outside, output 1 inside.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source. PUBLIC is the public address, or a range of addresses.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32, $PUBLIC 198.51.100.1);

nat :: IPRewriter(pattern $PUBLIC 1024-65535 - - 0 1, drop);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> Strip(14)
    -> CheckIPHeader
    -> nat
    -> EtherEncap(0x0800, 02:00:00:00:01:00, 02:00:00:00:01:01)
    -> out :: Counter
    -> Discard;

Idle -> [1] nat [1] -> inside :: Counter -> Discard;
