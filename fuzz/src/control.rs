//! A control connection whose other end says given bytes, a few at a time, to a small router.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use element::{Descriptor, Environment, Io, IoError, Stream};
use packet::Timestamp;
use router::{Options, Registry, Router};

/// What is controlled: counters, switches, tables, flows, a script; and a second socket that may only read.
const ROUTER: &str = "
    ControlSocket(SOCKET, 0, VERBOSE true);
    ControlSocket(SOCKET, 1, READONLY true);
    source :: RatedSource(DATA \\<4500001c 00010000 40110000 0a000001 0a000002 04d20035 00080000>, RATE 1000)
        -> c :: Counter -> MarkIPHeader -> s :: Switch(0)
        -> f :: IPFilter(allow udp, deny all) -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0)
        -> r :: RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 1) -> q :: Queue(10) -> u :: RatedUnqueue(100) -> d :: Discard;
    s[1] -> p :: Paint(1) -> d;
    r[1] -> a :: AverageCounter -> d;
    x :: Script(TYPE PASSIVE, set y $(add $args 1), return $(sprintf %5d $y));
";

/// Rounds that a router gets: what was written may have made it one that never ends.
const ROUNDS: u32 = 3_000;

/// The two connections, and a clock that goes on with each round.
struct Wires {
    rounds: Cell<u32>,
    /// What is yet to be said on each.
    inputs: [Rc<RefCell<Vec<u8>>>; 2],
    piece: usize,
}

/// One end of a connection.
struct Wire {
    descriptor: Descriptor,
    /// What is yet to be said, the next byte last.
    input: Rc<RefCell<Vec<u8>>>,
    piece: usize,
}

impl Stream for Wire {
    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        let mut input = self.input.borrow_mut();
        let mut count = 0;
        for (to, byte) in into.iter_mut().take(self.piece).zip(std::iter::from_fn(|| input.pop())) {
            *to = byte;
            count += 1;
        }
        Ok(if count == 0 { Io::Closed } else { Io::Done(count) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Io, IoError> {
        Ok(Io::Done(bytes.len()))
    }
}

impl Environment for Wires {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + i64::from(self.rounds.get()))
    }

    fn steady(&self) -> Timestamp {
        self.now()
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, _: &str) {}

    fn connect(&self, address: &str) -> Result<Box<dyn Stream>, IoError> {
        let number = usize::from(address == "fd:1");
        let descriptor = Descriptor(number as i32);
        Ok(Box::new(Wire { descriptor, input: self.inputs[number].clone(), piece: self.piece }))
    }

    fn wait(&self, watched: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        self.rounds.set(self.rounds.get() + 1);
        watched.iter().map(|(descriptor, ..)| *descriptor).collect()
    }

    fn is_interrupted(&self) -> bool {
        self.rounds.set(self.rounds.get() + 1);
        self.rounds.get() > ROUNDS
    }
}

/// Says `bytes` to the first connection, what stands behind a zero byte to the one that may only read, `piece` bytes at
/// a time.
pub fn serve(piece: usize, bytes: &[u8]) {
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled = click_lang::compile(ROUTER, &click_lang::Options::new("fuzz", &is_class));
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut input =
        || Rc::new(RefCell::new(parts.next().unwrap_or_default().iter().rev().copied().collect()));
    let wires = Rc::new(Wires { rounds: Cell::new(0), inputs: [input(), input()], piece: piece.max(1) });
    let options = Options { seed: Some(1), packets: 1 << 12, stop_when_idle: false, ..Options::default() };
    let router = Router::new(compiled.graph, Registry::new(elements::REGISTRY), wires, options);
    router.unwrap_or_else(|problems| panic!("the router is in order: {problems:?}")).run(None);
}
