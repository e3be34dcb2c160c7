//! The interface to the router that an element has during a call.

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

/// The interface to the router that an element has during a call.
pub struct Context<'a> {
    runtime: &'a dyn Runtime,
    outputs: &'a mut Outputs,
    groups: &'a [u16],
    element: usize,
}

impl<'a> Context<'a> {
    /// For one call of `element`. `groups` holds the group of each output port; ports beyond its length are in group 0.
    #[inline]
    pub fn new(
        runtime: &'a dyn Runtime,
        outputs: &'a mut Outputs,
        groups: &'a [u16],
        element: usize,
    ) -> Context<'a> {
        Context { runtime, outputs, groups, element }
    }

    /// The router, for elements that control it. The methods below cover the needs of packet elements.
    pub fn runtime(&self) -> &'a dyn Runtime {
        self.runtime
    }

    /// The index of the called element.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.runtime.element_name(self.element)
    }

    /// Wall-clock time; constant during one run of a task, a timer or a handler.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.runtime.now()
    }

    /// Monotonic time, for intervals; constant during one run of a task, a timer or a handler.
    #[inline]
    pub fn steady(&self) -> Timestamp {
        self.runtime.steady()
    }

    /// A random number below 2^31. Every element has its own sequence, so results do not depend on batches. If a
    /// RandomSeed asks for Click's numbers, all elements share one sequence, and batches hold one packet.
    pub fn random(&self) -> u32 {
        self.runtime.random(self.element)
    }

    /// A uniformly distributed random number from `low` to `high`; `low` if the range is empty.
    pub fn random_between(&self, low: u32, high: u32) -> u32 {
        between(low, high, || self.random())
    }

    /// 64 random bits for the key of a hash table, independent of the numbers that `random` returns.
    pub fn hash_seed(&self) -> u64 {
        self.runtime.hash_seed(self.element)
    }

    /// The environment.
    pub fn environment(&self) -> &'a dyn Environment {
        self.runtime.environment()
    }

    /// Names defined by information elements.
    pub fn names(&self) -> &'a Names {
        self.runtime.names()
    }

    /// The setup with which arguments of this element are parsed; `name` is the element's name.
    pub fn setup<'s>(&'s self, name: &'s str) -> Setup<'s> {
        Setup::new(name, (self.inputs(), self.outputs()), self.names(), self.environment())
    }

    /// Parses a handler's value as an argument of type `T`.
    pub fn argument<T: FromArgument>(&self, text: &str) -> Result<T, HandlerError> {
        let name = self.name();
        T::from_argument(text.trim(), &self.setup(&name)).map_err(HandlerError::Value)
    }

    /// Like `argument`, but an error names the argument `keyword`.
    pub fn keyword<T: FromArgument>(&self, keyword: &str, text: &str) -> Result<T, HandlerError> {
        let with_keyword =
            |error| HandlerError::with_code(HandlerError::UNSPECIFIED, format_args!("{keyword}: {error}"));
        self.argument(text).map_err(with_keyword)
    }

    /// Parses the value that a handler assigns to one field of the element: a number, a boolean or an address. Errors
    /// use Click's wording.
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

    /// Writes a line to the log, like Click's chatter.
    pub fn log(&self, text: &str) {
        self.runtime.log(text);
    }

    /// During setup: reports a warning about the element.
    pub fn warn(&self, text: &str) {
        self.runtime.remark(self.element, false, None, text);
    }

    /// During setup: reports a warning about a location in a data file, `FILE:LINE`.
    pub fn warn_of(&self, location: &str, text: &str) {
        self.runtime.remark(self.element, false, Some(location), text);
    }

    /// During setup: reports an error about the element that does not prevent it from running.
    pub fn note(&self, text: &str) {
        self.runtime.remark(self.element, true, None, text);
    }

    /// Number of connected inputs.
    pub fn inputs(&self) -> usize {
        self.runtime.ports(self.element).0
    }

    /// Number of connected outputs.
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

    /// Emits a batch to output `port`. It is delivered after this call, behind earlier batches. If the output does not
    /// exist, the packets are dropped.
    #[inline]
    pub fn emit(&mut self, port: usize, batch: Batch) {
        let group = self.group(port);
        self.outputs.emit(port, group, batch);
    }

    /// The number of batches that this call has emitted: the index of the next one, for `emit_at`.
    #[inline]
    pub fn emitted(&self) -> usize {
        self.outputs.emitted()
    }

    /// Emits a batch ahead of the batches with index `index` and above. It must be the last emission of a call.
    #[inline]
    pub fn emit_at(&mut self, index: usize, port: usize, batch: Batch) {
        self.outputs.emit_at(index, port, batch);
    }

    /// Emits one packet. Consecutive packets share a batch where order allows.
    #[inline]
    pub fn send(&mut self, port: usize, packet: Packet) {
        let group = self.group(port);
        self.outputs.send(port, group, packet);
    }

    /// Sends each packet of a batch to the output at the packet's index in `ports`. A packet without an entry, or whose
    /// output does not exist, is dropped and counted under the reason.
    pub fn send_to_ports(&mut self, mut batch: Batch, ports: &[u32], reason: Reason) {
        let outputs = self.outputs() as u32;
        // Fast path: all packets go to one output, so the batch stays whole.
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

    /// Whether this call has emitted anything in the order group of output `port`.
    #[inline]
    pub fn has_emitted_in_group_of(&self, port: usize) -> bool {
        self.outputs.has_emitted_in(self.group(port))
    }

    /// Pulls at most `most` packets from input `port` and appends them to `into`; returns the number pulled.
    #[inline]
    pub fn pull(&mut self, port: usize, most: usize, into: &mut Batch) -> usize {
        let before = into.len();
        self.runtime.pull(self.element, port, most, into);
        into.len() - before
    }

    /// Pulls at most `most` packets one by one until a pull returns none, as when a packet is dropped upstream. If the
    /// input is fed directly by queues, it pulls all at once. Returns the number pulled.
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

    /// Forwards all further pulls at an output directly to an input, without calling this element. Such pulls can
    /// therefore arrive during a call of this element, as when its own detour leads back to it.
    pub fn forward_pulls(&self, output: usize, input: Option<usize>) {
        self.runtime.forward_pulls(self.element, output, input);
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

    /// Declares a drop reason for a user's function of this element. `None` if the name is not [well
    /// formed](reason::is_user_name), or the router has too many.
    pub fn declare_reason(&self, name: &str) -> Option<Reason> {
        self.runtime.declare_reason(self.element, name)
    }

    /// Counts a packet that could not be created because the pool is exhausted.
    pub fn count_exhausted(&mut self) {
        self.runtime.count_drops(self.element, Reason::NO_BUFFER, 1);
    }

    /// A packet that holds a copy of `bytes`; if the pool is exhausted, that is counted.
    pub fn packet(&mut self, bytes: &[u8]) -> Option<Packet> {
        let packet = self.runtime.pool().packet(bytes);
        if packet.is_none() {
            self.count_exhausted();
        }
        packet
    }

    /// Delivers what this call has emitted so far, if packets are processed one by one, before the call continues, as
    /// Click does. Only for elements that no packet is pushed to and that no element pulls from, so that no packet can
    /// return to them during the call.
    pub fn deliver_singly(&mut self) {
        if self.batch_limit() == 1 && !self.outputs.is_empty() {
            self.runtime.deliver(self.element, self.outputs);
        }
    }

    /// Another packet with the same bytes; if the pool is exhausted, that is counted.
    #[inline]
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        let copy = packet.duplicate();
        if copy.is_none() {
            self.count_exhausted();
        }
        copy
    }

    /// The packet pool.
    pub fn pool(&self) -> &Pool {
        self.runtime.pool()
    }

    /// An empty batch with memory.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.outputs.batch()
    }

    /// Takes back a batch's memory; packets in it are dropped without being counted.
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

    /// How many consecutive turns the task may take at once: more than one if no other task is waiting.
    #[inline]
    pub fn take_turns(&self) -> usize {
        self.runtime.take_turns(self.element)
    }

    /// Sets timer number `timer` to a point of steady time, replacing an earlier setting. Timers due at the same time
    /// run in the order in which their spans began. Setting a timer again after it expired continues from the start of
    /// its span.
    pub fn set_timer(&self, timer: usize, at: Timestamp) {
        self.runtime.set_timer(self.element, timer, at);
    }

    /// Sets timer number `timer` to expire after `span`.
    pub fn set_timer_after(&self, timer: usize, span: Timestamp) {
        self.runtime.start_timer(self.element, timer, self.steady() + span);
    }

    /// Cancels timer number `timer`.
    pub fn clear_timer(&self, timer: usize) {
        self.runtime.clear_timer(self.element, timer);
    }

    /// When timer number `timer` expires, if it is set.
    pub fn timer(&self, timer: usize) -> Option<Timestamp> {
        self.runtime.timer(self.element, timer)
    }

    /// Sets whether listeners downstream (`Empty`) or upstream (`Full`) should try.
    #[inline]
    pub fn set_signal(&self, direction: Direction, active: bool) {
        self.runtime.set_signal(self.element, direction, active);
    }

    /// Finds the notifiers upstream of input `port` and listens to them.
    pub fn upstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element, port, Direction::Empty)
    }

    /// Finds the notifiers downstream of output `port` and listens to them.
    pub fn downstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element, port, Direction::Full)
    }

    /// Requests a call of `ready` when the descriptor can be read or written.
    pub fn watch(&self, descriptor: Descriptor, read: bool, write: bool) {
        self.runtime.watch(self.element, descriptor, read, write);
    }
}

/// Other elements.
impl Context<'_> {
    /// Reads a handler; the path is resolved relative to this element.
    pub fn read_handler(&self, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.runtime.read_handler(self.element, path, parameter)
    }

    /// Writes a handler at once. Fails as busy if its element is being called: see `defer_write`.
    pub fn write_handler(&self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.runtime.write_handler(self.element, path, value)
    }

    /// Writes a handler once this call has ended; a failure is logged.
    pub fn defer_write(&self, path: &str, value: &str) {
        self.runtime.defer_write(self.element, path.into(), value.into());
    }

    /// Records a new value of an argument, so that `config` shows it at its position or after its keyword.
    pub fn record_argument(&self, position: Option<usize>, keyword: &str, value: &str) {
        self.runtime.record_argument(self.element, position, keyword, value);
    }

    /// The text of the element's configuration.
    pub fn configuration(&self) -> String {
        self.runtime.configuration(self.element)
    }

    /// Reconfigures an element, as a write to its `config` does; on failure nothing changes.
    pub fn reconfigure<E: Element>(&self, element: &mut E, config: &str) -> Result<(), HandlerError> {
        let name = self.name();
        let mut setup = self.setup(&name);
        let args = E::Args::parse(Arguments::new(config), &mut setup)?;
        element.reconfigure(args, &mut setup)?;
        for warning in &setup.warnings {
            self.log(&format!("  warning: {warning}"));
        }
        self.runtime.record_configuration(self.element, config);
        Ok(())
    }

    /// The `T` exported by the element called `name`, as seen from this element.
    pub fn import<T: 'static>(&self, name: &str) -> Option<Rc<T>> {
        let element = self.runtime.find(self.element, name)?;
        self.runtime.export(element)?.downcast().ok()
    }

    /// Decrements the driver's count; the driver stops at 0.
    pub fn stop(&self) {
        self.runtime.stop(1);
    }
}
