// A wire: what comes in goes out unchanged. The least that a middlebox can do, and so the floor of every other.
//
// Parameters: LENGTH bytes of each frame, LIMIT frames in all, BURST frames at a turn of the source.

define($LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> out :: Counter
    -> Discard;
