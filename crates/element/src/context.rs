//! What an element can do while it is called.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use packet::{Batch, Packet, Pool, Timestamp};
use reason::Reason;

use crate::arguments::{Args, Arguments, FromArgument, Setup};
use crate::contract::Element;
use crate::environment::{Descriptor, Environment};
use crate::error::HandlerError;
use crate::names::Names;
use crate::outputs::Outputs;
use crate::random::between;
use crate::runtime::Runtime;
use crate::signal::{Direction, Signal};

/// What an element can do while it is called.
pub struct Context<'a> {
    runtime: &'a dyn Runtime,
    outputs: &'a mut Outputs,
    groups: &'a [u16],
    element: usize,
}

impl<'a> Context<'a> {
    /// For one call of `element`, whose output ports belong to `groups` (those beyond its length to group 0).
    #[inline]
    pub fn new(
        runtime: &'a dyn Runtime,
        outputs: &'a mut Outputs,
        groups: &'a [u16],
        element: usize,
    ) -> Context<'a> {
        Context { runtime, outputs, groups, element }
    }

    /// The router: for elements that control it. Packet elements have what they need below.
    pub fn runtime(&self) -> &'a dyn Runtime {
        self.runtime
    }

    /// The number of the element that is called.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.runtime.element_name(self.element)
    }

    /// Wall-clock time; it stands still during one turn of a task, a timer or a handler.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.runtime.now()
    }

    /// Time that never jumps, for intervals; it stands still likewise.
    #[inline]
    pub fn steady(&self) -> Timestamp {
        self.runtime.steady()
    }

    /// A random number below 2^31. Every element has a sequence of its own, so results do not depend on batches; where
    /// a RandomSeed asks for Click's numbers there is one for all, and batches of one.
    pub fn random(&self) -> u32 {
        self.runtime.random(self.element)
    }

    /// A random number from `low` to `high`, all equally often; `low` if there is none.
    pub fn random_between(&self, low: u32, high: u32) -> u32 {
        between(low, high, || self.random())
    }

    /// 64 random bits for the key of a hash table: they are not taken from what `random` gives.
    pub fn secret(&self) -> u64 {
        self.runtime.secret(self.element)
    }

    /// The outside world.
    pub fn environment(&self) -> &'a dyn Environment {
        self.runtime.environment()
    }

    /// Names that information elements have defined.
    pub fn names(&self) -> &'a Names {
        self.runtime.names()
    }

    /// What arguments of this element, whose name is given, are parsed with.
    pub fn setup<'s>(&'s self, name: &'s str) -> Setup<'s> {
        Setup::new(name, (self.inputs(), self.outputs()), self.names(), self.environment())
    }

    /// Parses a handler's value as an argument of type `T`.
    pub fn argument<T: FromArgument>(&self, text: &str) -> Result<T, HandlerError> {
        let name = self.name();
        T::from_argument(text.trim(), &self.setup(&name)).map_err(HandlerError::Value)
    }

    /// As `argument`, of the argument called `keyword`, which an error names.
    pub fn keyword<T: FromArgument>(&self, keyword: &str, text: &str) -> Result<T, HandlerError> {
        let told =
            |error| HandlerError::with_code(HandlerError::UNSPECIFIED, format_args!("{keyword}: {error}"));
        self.argument(text).map_err(told)
    }

    /// Parses the value that a handler gives to one field of the element: a number, a boolean or an address. What is
    /// expected is told in Click's words.
    pub fn data<T: FromArgument>(&self, text: &str) -> Result<T, HandlerError> {
        self.argument(text).map_err(|_| {
            let expected = match (T::KIND, size_of::<T>()) {
                ("integer", 1) => "uint8_t",
                ("integer", 2) => "uint16_t",
                ("IPv4 address", _) => "IP address",
                ("time", _) => "time in seconds",
                (kind, _) => kind,
            };
            HandlerError::new(format_args!("expected {expected}"))
        })
    }

    /// Parses a handler's value as the configuration of an argument struct.
    pub fn arguments<A: Args>(&self, config: &str) -> Result<A, HandlerError> {
        let name = self.name();
        Ok(A::parse(Arguments::new(config), &mut self.setup(&name))?)
    }

    /// Writes a line to the log, as Click's chatter does.
    pub fn say(&self, text: &str) {
        self.runtime.say(text);
    }

    /// While the element is set up: warns of what is odd about it.
    pub fn warn(&self, text: &str) {
        self.runtime.remark(self.element, false, None, text);
    }

    /// While the element is set up: warns of what is odd about a place in a file of data, `FILE:LINE`.
    pub fn warn_of(&self, place: &str, text: &str) {
        self.runtime.remark(self.element, false, Some(place), text);
    }

    /// While the element is set up: tells of what is wrong about it and keeps nothing from running.
    pub fn note(&self, text: &str) {
        self.runtime.remark(self.element, true, None, text);
    }

    /// Connected input ports.
    pub fn inputs(&self) -> usize {
        self.runtime.ports(self.element).0
    }

    /// Connected output ports.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.runtime.ports(self.element).1
    }

    /// Whether packets are pushed to input `port`.
    pub fn is_push_input(&self, port: usize) -> bool {
        self.runtime.is_push_input(self.element, port)
    }

    /// Whether output `port` pushes.
    pub fn is_push_output(&self, port: usize) -> bool {
        self.runtime.is_push_output(self.element, port)
    }
}

/// Packets.
impl Context<'_> {
    #[inline]
    fn group(&self, port: usize) -> usize {
        self.groups.get(port).copied().unwrap_or(0).into()
    }

    /// Emits a batch by output `port`. It is delivered after this call, after what was emitted before. At an output
    /// that does not exist the packets are dropped.
    #[inline]
    pub fn emit(&mut self, port: usize, batch: Batch) {
        let group = self.group(port);
        self.outputs.emit(port, group, batch);
    }

    /// The place that a batch emitted now would have among those of this call: see `emit_at`.
    #[inline]
    pub fn place(&self) -> usize {
        self.outputs.place()
    }

    /// Emits a batch before what this call has emitted since `place`; the last thing that a call does.
    #[inline]
    pub fn emit_at(&mut self, place: usize, port: usize, batch: Batch) {
        self.outputs.emit_at(place, port, batch);
    }

    /// Emits one packet; packets that follow each other share batches where order allows.
    #[inline]
    pub fn send(&mut self, port: usize, packet: Packet) {
        let group = self.group(port);
        self.outputs.send(port, group, packet);
    }

    /// Sends each packet of a batch to the output that stands at its place in `ports`; a packet without one, or whose
    /// output does not exist, is dropped and counted under the reason.
    pub fn spread(&mut self, mut batch: Batch, ports: &[u32], reason: Reason) {
        let outputs = self.outputs() as u32;
        // All to one output, as in most traffic: the batch stays whole.
        if let [first, rest @ ..] = ports
            && ports.len() >= batch.len()
            && *first < outputs
            && rest.iter().all(|port| port == first)
        {
            return self.emit(*first as usize, batch);
        }
        let mut ports = ports.iter();
        for packet in batch.drain() {
            match ports.next() {
                Some(port) if *port < outputs => self.send(*port as usize, packet),
                _ => self.drop(packet, reason),
            }
        }
        self.recycle(batch);
    }

    /// Whether this call has emitted nothing at all.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Whether this call has emitted anything whose order relative to output `port` matters.
    #[inline]
    pub fn is_touched(&self, port: usize) -> bool {
        self.outputs.is_touched(self.group(port))
    }

    /// Pulls at most `most` packets from input `port` to the end of `into`; returns how many came.
    #[inline]
    pub fn pull(&mut self, port: usize, most: usize, into: &mut Batch) -> usize {
        let before = into.len();
        self.runtime.pull(self.element, port, most, into);
        into.len() - before
    }

    /// Pulls at most `most` packets one by one, up to the first pull in vain, as where a packet is dropped on the way;
    /// all at once where they come out of a queue. Returns how many came.
    pub fn pull_burst(&mut self, port: usize, most: usize, into: &mut Batch) -> usize {
        let before = into.len();
        if most < 2 || self.runtime.is_fed_by_storage(self.element, port) {
            self.runtime.pull(self.element, port, most, into);
        } else {
            while into.len() - before < most && self.pull(port, 1, into) > 0 {}
        }
        into.len() - before
    }

    /// Pulls one packet from input `port`.
    pub fn pull_one(&mut self, port: usize) -> Option<Packet> {
        let mut batch = self.batch();
        self.runtime.pull(self.element, port, 1, &mut batch);
        let packet = batch.pop();
        self.recycle(batch);
        packet
    }

    /// Lets pulls at an output go on to an input from now on, without a call of this element: so they may come while
    /// it is being called, as where its own detour leads back to it.
    pub fn relay(&self, output: usize, input: Option<usize>) {
        self.runtime.relay(self.element, output, input);
    }

    /// Drops a packet and counts it under the reason.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        drop(packet);
        self.runtime.count_drops(self.element, reason, 1);
    }

    /// Drops a batch and counts its packets under the reason.
    pub fn drop_batch(&mut self, batch: Batch, reason: Reason) {
        self.runtime.count_drops(self.element, reason, batch.len() as u64);
        self.recycle(batch);
    }

    /// Declares a reason of a user's function, under which this element may drop packets from now on. `None` if the name
    /// is not [well formed](reason::is_user_name), or the router has too many.
    pub fn declare_reason(&self, name: &str) -> Option<Reason> {
        self.runtime.declare_reason(self.element, name)
    }

    /// Counts a packet that could not be made for want of a buffer.
    pub fn count_exhausted(&mut self) {
        self.runtime.count_drops(self.element, Reason::NO_BUFFER, 1);
    }

    /// A packet that holds a copy of `bytes`; when the pool is exhausted that is counted.
    pub fn packet(&mut self, bytes: &[u8]) -> Option<Packet> {
        let packet = self.runtime.pool().packet(bytes);
        if packet.is_none() {
            self.count_exhausted();
        }
        packet
    }

    /// Delivers what this call has emitted so far, where packets pass one by one: before the call goes on, as Click
    /// does. For elements that nothing is pushed to and nobody pulls from, so that no packet can come back to them
    /// meanwhile.
    pub fn deliver_singly(&mut self) {
        if self.batch_limit() == 1 && !self.outputs.is_empty() {
            self.runtime.deliver(self.element, self.outputs);
        }
    }

    /// Another packet with the same bytes; when the pool is exhausted that is counted.
    #[inline]
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        let copy = packet.duplicate();
        if copy.is_none() {
            self.count_exhausted();
        }
        copy
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        self.runtime.pool()
    }

    /// An empty batch.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.outputs.batch()
    }

    /// Takes a batch's memory back; packets in it are dropped uncounted.
    #[inline]
    pub fn recycle(&mut self, batch: Batch) {
        self.outputs.recycle(batch);
    }

    /// The most packets to put into a batch.
    #[inline]
    pub fn batch_limit(&self) -> usize {
        self.outputs.limit()
    }
}

/// Tasks, timers, signals, descriptors.
impl Context<'_> {
    /// Puts the task on the run queue.
    #[inline]
    pub fn schedule(&self) {
        self.runtime.schedule(self.element);
    }

    /// Takes the task off the run queue.
    pub fn unschedule(&self) {
        self.runtime.unschedule(self.element);
    }

    /// Whether the task is on the run queue.
    pub fn is_scheduled(&self) -> bool {
        self.runtime.is_scheduled(self.element)
    }

    /// How many turns in a row the task may take at once: more than one when no other task is waiting.
    #[inline]
    pub fn turns(&self) -> usize {
        self.runtime.turns(self.element)
    }

    /// Sets timer number `timer` to a point of steady time; an earlier setting is replaced. At one time timers come in
    /// the order in which their spans began, and one that is set anew after it came goes on from its beginning.
    pub fn set_timer(&self, timer: usize, at: Timestamp) {
        self.runtime.set_timer(self.element, timer, at);
    }

    /// Sets timer number `timer` to the end of a span that begins now.
    pub fn set_timer_after(&self, timer: usize, span: Timestamp) {
        self.runtime.start_timer(self.element, timer, self.steady() + span);
    }

    /// Takes timer number `timer` back.
    pub fn clear_timer(&self, timer: usize) {
        self.runtime.clear_timer(self.element, timer);
    }

    /// When timer number `timer` comes, if it is set.
    pub fn timer(&self, timer: usize) -> Option<Timestamp> {
        self.runtime.timer(self.element, timer)
    }

    /// Tells listeners downstream (`Empty`) or upstream (`Full`) whether it is worth trying.
    #[inline]
    pub fn set_signal(&self, direction: Direction, active: bool) {
        self.runtime.set_signal(self.element, direction, active);
    }

    /// Looks upstream of input `port` for notifiers and listens to them.
    pub fn upstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element, port, Direction::Empty)
    }

    /// Looks downstream of output `port` for notifiers and listens to them.
    pub fn downstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element, port, Direction::Full)
    }

    /// Asks to be told by `ready` when the descriptor can be read or written.
    pub fn watch(&self, descriptor: Descriptor, read: bool, write: bool) {
        self.runtime.watch(self.element, descriptor, read, write);
    }
}

/// Other elements.
impl Context<'_> {
    /// Reads a handler; the path is resolved from this element's place.
    pub fn read_handler(&self, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.runtime.read_handler(self.element, path, parameter)
    }

    /// Writes a handler now. One of an element that is being called is busy: see `defer_write`.
    pub fn write_handler(&self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.runtime.write_handler(self.element, path, value)
    }

    /// Writes a handler as soon as this call is over; a failure is logged.
    pub fn defer_write(&self, path: &str, value: &str) {
        self.runtime.defer_write(self.element, path.into(), value.into());
    }

    /// Says that an argument has a new value, so that `config` shows it: in its place, or behind its keyword.
    pub fn note_argument(&self, position: Option<usize>, keyword: &str, value: &str) {
        self.runtime.note_argument(self.element, position, keyword, value);
    }

    /// The text of the element's configuration.
    pub fn configuration(&self) -> String {
        self.runtime.configuration(self.element)
    }

    /// Makes an element anew from a new configuration, as writing its `config` does; on failure nothing has changed.
    pub fn reconfigure<E: Element>(&self, element: &mut E, config: &str) -> Result<(), HandlerError> {
        let name = self.name();
        let mut setup = self.setup(&name);
        let args = E::Args::parse(Arguments::new(config), &mut setup)?;
        element.reconfigure(args, &mut setup)?;
        for warning in &setup.warnings {
            self.say(&format!("  warning: {warning}"));
        }
        self.runtime.note_configuration(self.element, config);
        Ok(())
    }

    /// What the element called `name`, seen from here, exports as a `T`.
    pub fn import<T: 'static>(&self, name: &str) -> Option<Rc<T>> {
        let element = self.runtime.find(self.element, name)?;
        self.runtime.export(element)?.downcast().ok()
    }

    /// Asks the driver to stop, as often as it takes to use its count up.
    pub fn stop(&self) {
        self.runtime.stop(1);
    }
}
