// A wire: passes every frame on unchanged. This is the least that a middlebox can do, so no other can be faster.
//
// Parameters: LENGTH is the number of bytes per frame, LIMIT the number of frames, BURST the number of frames per turn
// of the source.

define($LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> out :: Counter
    -> Discard;
