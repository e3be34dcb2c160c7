// An Ethernet mirror: sends every frame back with its two addresses swapped.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> EtherMirror
    -> out :: Counter
    -> Discard;
