// A load balancer: distributes flows over four servers, with all packets of a flow to the same server.
//
// The hash covers bytes 26 to 37 of the frame: both IPv4 addresses and both ports. The frame is sent to the Ethernet
// address of the chosen server, which owns the shared IP address and replies directly (direct server return).
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> balance :: HashSwitch(26, 12);

balance [0] -> StoreEtherAddress(02:00:00:00:01:01, dst) -> one :: Counter -> out :: Counter -> Discard;
balance [1] -> StoreEtherAddress(02:00:00:00:01:02, dst) -> two :: Counter -> out;
balance [2] -> StoreEtherAddress(02:00:00:00:01:03, dst) -> three :: Counter -> out;
balance [3] -> StoreEtherAddress(02:00:00:00:01:04, dst) -> four :: Counter -> out;
