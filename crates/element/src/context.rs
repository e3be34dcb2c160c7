//! The interface to the router that an element has during a call.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use packet::{Batch, MAX_SCATTER, Packet, Pool, Timestamp};
use reason::Reason;

use crate::arguments::{Args, Arguments, FromArgument, Setup};
use crate::class_info::ShardMode;
use crate::deferred::DeferredWrite;
use crate::driver::Driver;
use crate::element_state::ElementState;
use crate::environment::{Descriptor, Environment};
use crate::error::HandlerError;
use crate::fate::Fate;
use crate::names::Names;
use crate::outputs::Outputs;
use crate::random::between;
use crate::resources::{Resources, SetupRemark};
use crate::runtime::{HandlerTarget, Runtime};
use crate::shard::Shard;
use crate::signal::{Direction, Signal};
use crate::tap::LogTap;

/// The interface to the router that an element has during a call.
pub struct Context<'a> {
    runtime: &'a dyn Runtime,
    resources: &'a Resources,
    element: &'a ElementState,
    outputs: &'a mut Outputs,
}

impl<'a> Context<'a> {
    /// For one call of `element`, which fills `outputs`.
    #[inline]
    pub fn new(
        runtime: &'a dyn Runtime,
        resources: &'a Resources,
        element: &'a ElementState,
        outputs: &'a mut Outputs,
    ) -> Context<'a> {
        Context { runtime, resources, element, outputs }
    }

    /// The router, for elements that control it. The methods below cover the needs of packet elements.
    pub fn runtime(&self) -> &'a dyn Runtime {
        self.runtime
    }

    /// Tells the router that elements of this class do nothing in this call, so that it need not make it. Only for methods that classes
    /// don't implement.
    pub(crate) fn needs_no_such_call(&self) {
        self.resources.is_needless.set(true);
    }

    /// Tells the router, in [`Element::resolve`](crate::Element::resolve), whether it must initialise this element. Packets wait for
    /// the initialisation of a configuration that replaces another, and not for the resolution of its references.
    pub fn needs_initialization(&self, is_needed: bool) {
        self.resources.is_needless.set(!is_needed);
    }

    /// Tells the router, in [`Element::resolve`](crate::Element::resolve), that it must process one packet at a time, as with
    /// [`Setup::unbatched`].
    pub fn needs_single_packets(&self) {
        self.resources.needs_single_packets.set(true);
    }

    /// Sets how many packets a batch may have at most from now on, in the whole router, in place of this element's previous limit.
    /// An element that will act on others after a number of packets keeps the limit below what is left of that number. With the last
    /// packet, batches have one packet then, and everything is as if they always had.
    ///
    /// That needs [`gets_each_packet_once`](Self::gets_each_packet_once).
    pub fn limit_batches(&self, most: usize) {
        self.resources.batch_limits.set(self.element.index, most);
    }

    /// Whether each packet that leaves a source or a queue is pushed to this element at most once, before the next batch leaves it:
    /// nothing on the way copies, makes or keeps packets, or gathers them up to the end of a call.
    pub fn gets_each_packet_once(&self) -> bool {
        self.runtime.gets_each_packet_once(self.element.index)
    }

    /// The index of the called element.
    pub fn element(&self) -> usize {
        self.element.index
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.element.name.clone()
    }

    /// The name of its class.
    pub fn class_name(&self) -> &'static str {
        self.element.class_name()
    }

    /// The heading of messages about it: its location, the operation `what`, its name and class.
    pub fn message_heading(&self, what: &str) -> String {
        let (location, name) = (self.runtime.location(self.element.index), &self.element.name);
        format!("{location}: {what} ‘{name} :: {}’:", self.class_name())
    }

    /// Wall-clock time; constant during one run of a task, a timer or a handler.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.resources.now()
    }

    /// Monotonic time, for intervals; constant during one run of a task, a timer or a handler.
    #[inline]
    pub fn steady(&self) -> Timestamp {
        self.resources.steady()
    }

    /// A random number below 2^31. Every element has its own sequence, so results do not depend on batches. If a
    /// RandomSeed asks for Click's numbers, all elements share one sequence, and batches hold one packet.
    pub fn random(&self) -> u32 {
        self.resources.random.draw(&self.element.random)
    }

    /// A uniformly distributed random number from `low` to `high`; `low` if the range is empty.
    pub fn random_between(&self, low: u32, high: u32) -> u32 {
        between(low, high, || self.random())
    }

    /// 64 random bits for the key of a hash table, independent of the numbers that `random` returns.
    pub fn hash_seed(&self) -> u64 {
        self.element.random.draw()
    }

    /// The environment.
    pub fn environment(&self) -> &'a dyn Environment {
        self.resources.environment.as_ref()
    }

    /// Names defined by information elements.
    pub fn names(&self) -> &'a Names {
        &self.resources.names
    }

    /// The setup with which arguments of this element are parsed; `name` is the element's name.
    pub fn setup<'s>(&'s self, name: &'s str) -> Setup<'s> {
        let mut setup = Setup::new(name, (self.inputs(), self.outputs()), self.names(), self.environment());
        setup.shard = self.shard();
        setup
    }

    /// The shard that the element is in.
    pub fn shard(&self) -> Shard {
        self.resources.shard
    }

    /// Like [`Setup::require_one_shard`], for handlers.
    pub fn require_one_shard(&self, what: &str) -> Result<(), HandlerError> {
        self.setup("").require_one_shard(what).map_err(HandlerError::from)
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

    /// Writes a line to the log, like Click's chatter. The class declares [`ClassInfo::logs`](crate::ClassInfo::logs).
    pub fn log(&self, text: &str) {
        debug_assert!(self.element.class.logs, "{} does not declare `logs`", self.class_name());
        self.resources.log(text);
    }

    /// Writes a line to the log in a handler, in a timer, in an unbatched router, or in a turn that has sent no
    /// packets.
    pub fn log_between_packets(&self, text: &str) {
        self.resources.log(text);
    }

    /// During setup: reports a warning about the element.
    pub fn warn(&self, text: &str) {
        self.remark(true, None, text.into());
    }

    /// During setup: reports a warning about a location in a data file, `FILE:LINE`.
    pub fn warn_of(&self, location: &str, text: &str) {
        self.remark(true, Some(location.into()), format!("{location}: {text}"));
    }

    /// During setup: reports an error about the element that does not prevent it from running.
    pub fn note(&self, text: &str) {
        self.remark(false, None, text.into());
    }

    fn remark(&self, is_warning: bool, data_location: Option<String>, text: String) {
        let element = self.element.index;
        self.resources.remarks.borrow_mut().push(SetupRemark { element, is_warning, data_location, text });
    }

    /// Number of connected inputs.
    pub fn inputs(&self) -> usize {
        self.element.ports.0
    }

    /// Number of connected outputs.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.element.outputs()
    }

    /// Whether packets are pushed to input `port`.
    pub fn is_push_input(&self, port: usize) -> bool {
        self.runtime.is_push_input(self.element.index, port)
    }

    /// Whether output `port` pushes.
    pub fn is_push_output(&self, port: usize) -> bool {
        self.runtime.is_push_output(self.element.index, port)
    }
}

/// Packets.
impl Context<'_> {
    /// Emits a batch to output `port`. It is delivered after this call, behind earlier batches. If the output does not
    /// exist, the packets are dropped.
    #[inline]
    pub fn emit(&mut self, port: usize, batch: Batch) {
        if let Some(to) = self.element.gathering(port) {
            return self.outputs.gather_batch(to, batch);
        }
        match self.element.connection(port) {
            Some(connection) => self.outputs.emit(connection, self.element.group(port), batch),
            None => self.drop_batch(batch, Reason::NO_OUTPUT),
        }
    }

    /// The number of batches that this call has emitted: the index of the next one, for `emit_at`.
    #[inline]
    pub fn emitted(&self) -> usize {
        self.outputs.emitted()
    }

    /// Emits a batch ahead of the batches with index `index` and above. It must be the last emission of a call.
    #[inline]
    pub fn emit_at(&mut self, index: usize, port: usize, batch: Batch) {
        if let Some(to) = self.element.gathering(port) {
            return self.outputs.gather_batch(to, batch);
        }
        match self.element.connection(port) {
            Some(connection) => self.outputs.emit_at(index, connection, self.element.group(port), batch),
            None => self.drop_batch(batch, Reason::NO_OUTPUT),
        }
    }

    /// Puts back the last packets of the batch that is pushed. They arrive again after everything that the other packets cause. The
    /// class declares [`ClassInfo::puts_back`](crate::ClassInfo::puts_back), and takes at least one packet of each batch.
    pub fn put_back(&mut self, rest: Batch) {
        debug_assert!(self.element.class.puts_back, "{} does not declare `puts_back`", self.class_name());
        self.outputs.put_back(rest);
    }

    /// Emits one packet. Consecutive packets share a batch where order allows.
    #[inline]
    pub fn send(&mut self, port: usize, packet: Packet) {
        if let Some(to) = self.element.gathering(port) {
            return self.outputs.gather(to, packet);
        }
        match self.element.connection(port) {
            Some(connection) => self.outputs.send(connection, self.element.group(port), packet),
            None => self.drop(packet, Reason::NO_OUTPUT),
        }
    }

    /// Sends each packet of a batch to the output at the packet's index in `ports`. A packet without an entry, or whose
    /// output does not exist, is dropped and counted under the reason.
    pub fn send_to_ports(&mut self, mut batch: Batch, ports: &[u32], reason: Reason) {
        let outputs = self.outputs() as u32;
        // Fast path: all packets go to one output, so the batch stays whole.
        if let Some(first) = ports.first().filter(|first| **first < outputs)
            && ports.len() >= batch.len()
            && are_all(ports, *first)
        {
            return self.emit(*first as usize, batch);
        }
        if self.element.scatters() && self.emitted() == 0 && batch.len() <= self.batch_limit() {
            return self.scatter(batch, ports, reason);
        }
        for (packet, index) in batch.drain().zip(0..) {
            match ports.get(index).filter(|port| **port < outputs) {
                Some(port) => self.send(*port as usize, packet),
                None => self.drop(packet, reason),
            }
        }
        self.recycle(batch);
    }

    /// Sends the packets of a batch like `send_to_ports`, if each output fills batches of its own.
    fn scatter(&mut self, mut batch: Batch, ports: &[u32], reason: Reason) {
        let outputs = self.outputs();
        // One for each output, and one for packets without an output.
        let mut parts = [const { Batch::new() }; MAX_SCATTER];
        let parts = parts.get_mut(..=outputs).unwrap_or_default();
        parts.iter_mut().for_each(|part| *part = self.batch());
        batch.scatter(ports, parts);
        self.recycle(batch);
        // They leave in the order of their first packets.
        let mut left = parts.iter().filter(|part| !part.is_empty()).count();
        let runs = ports.chunk_by(|one, other| one == other).filter_map(|run| run.first());
        let mut ports = runs.map(|port| outputs.min(*port as usize)).chain([outputs]);
        while left > 0
            && let Some(port) = ports.next()
        {
            let Some(part) = parts.get_mut(port).filter(|part| !part.is_empty()) else { continue };
            let part = core::mem::take(part);
            left -= 1;
            if port < outputs {
                self.emit(port, part);
            } else {
                self.drop_batch(part, reason);
            }
        }
        parts.iter_mut().for_each(|part| self.recycle(core::mem::take(part)));
    }

    /// Whether this call has emitted anything in the order group of output `port`.
    #[inline]
    pub fn has_emitted_in_group_of(&self, port: usize) -> bool {
        self.outputs.has_emitted_in(self.element.group(port))
    }

    /// Pulls at most `most` packets from input `port` and appends them to `into`; returns the number pulled.
    #[inline]
    pub fn pull(&mut self, port: usize, most: usize, into: &mut Batch) -> usize {
        let before = into.len();
        self.runtime.pull(self.element.index, port, most, into);
        into.len() - before
    }

    /// Pulls at most `most` packets one by one until a pull returns none, as when a packet is dropped upstream. If no packet can
    /// end between the input and the queues that feed it, it pulls all at once. Returns the number pulled.
    pub fn pull_burst(&mut self, port: usize, most: usize, into: &mut Batch) -> usize {
        let before = into.len();
        if most < 2 || self.runtime.passes_pulls_whole(self.element.index, port) {
            self.runtime.pull(self.element.index, port, most, into);
        } else {
            while into.len() - before < most && self.pull(port, 1, into) > 0 {}
        }
        into.len() - before
    }

    /// Pulls packets one by one from input `port` and appends them to `into`, until a pull returns none or `goes_on` returns false,
    /// which is called after each with what was pulled. This is quicker than as many calls of [`pull_one`](Self::pull_one).
    /// Returns the number pulled.
    pub fn pull_while(
        &mut self,
        port: usize,
        into: &mut Batch,
        goes_on: &mut dyn FnMut(&mut Batch) -> bool,
    ) -> usize {
        let before = into.len();
        self.runtime.pull_while(self.element.index, port, into, goes_on);
        into.len() - before
    }

    /// Pulls one packet from input `port`.
    pub fn pull_one(&mut self, port: usize) -> Option<Packet> {
        let mut batch = self.batch();
        self.runtime.pull(self.element.index, port, 1, &mut batch);
        let packet = batch.pop();
        self.recycle(batch);
        packet
    }

    /// Forwards all further pulls at an output directly to an input, without calling this element. Such pulls can
    /// therefore arrive during a call of this element, as when its own detour leads back to it.
    pub fn forward_pulls(&self, output: usize, input: Option<usize>) {
        self.runtime.forward_pulls(self.element.index, output, input);
    }

    /// Drops a packet and counts it under the reason.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        drop(packet);
        self.element.count_drops(reason, 1);
    }

    /// Drops a batch and counts its packets under the reason.
    pub fn drop_batch(&mut self, batch: Batch, reason: Reason) {
        self.element.count_drops(reason, batch.len() as u64);
        self.outputs.recycle(batch);
    }

    /// Ends a packet and counts it under the fate.
    #[inline]
    pub fn end(&mut self, packet: Packet, fate: Fate) {
        drop(packet);
        self.element.count_fate(fate, 1);
    }

    /// Ends the packets of a batch and counts them under the fate.
    #[inline]
    pub fn end_batch(&mut self, batch: Batch, fate: Fate) {
        self.element.count_fate(fate, batch.len() as u64);
        self.outputs.recycle(batch);
    }

    /// Counts packets that came into being or ended, under the fate.
    #[inline]
    pub fn count(&self, fate: Fate, count: usize) {
        self.element.count_fate(fate, count as u64);
    }

    /// Declares a drop reason for a user's function of this element. `None` if the name is not [well
    /// formed](reason::is_user_name), or the router has too many.
    pub fn declare_reason(&self, name: &str) -> Option<Reason> {
        let reason = self.resources.user_reasons.declare(name)?;
        self.element.drops.declare(reason);
        Some(reason)
    }

    /// Counts packets that the element lost, under the reason.
    pub fn count_drops(&self, reason: Reason, count: u64) {
        self.element.count_drops(reason, count);
    }

    /// Counts packets that another element hands over to this one outside connections, as from a table that they share;
    /// if `gives` is set, that this one hands over to the other.
    pub fn count_transfer(&self, other: usize, count: usize, gives: bool) {
        let Some(other) = self.runtime.element(other) else { return };
        let (giver, taker) = if gives { (self.element, other) } else { (other, self.element) };
        giver.handed_over.set(giver.handed_over.get() + count as u64);
        taker.taken_over.set(taker.taken_over.get() + count as u64);
    }

    /// Counts packets that were made under the fate, and those among them that found no buffer as lost.
    #[inline]
    pub fn count_begun(&self, fate: Fate, wanted: usize, made: usize) {
        self.element.count_fate(fate, wanted as u64);
        if made < wanted {
            self.element.count_drops(Reason::NO_BUFFER, (wanted - made) as u64);
        }
    }

    /// Makes a packet of `length` bytes, zero or stale, with at least `headroom` bytes before them. If the pool is
    /// exhausted, the packet is counted as lost.
    pub fn allocate(&self, headroom: usize, length: usize) -> Option<Packet> {
        self.begin(Fate::Made, self.resources.pool.allocate_with(headroom, length))
    }

    /// Makes a packet that holds a copy of `bytes`. If the pool is exhausted, the packet is counted as lost.
    pub fn packet(&self, bytes: &[u8]) -> Option<Packet> {
        self.begin(Fate::Made, self.resources.pool.packet(bytes))
    }

    /// Counts a packet under a fate with which it came into being, and if there is none, as lost.
    #[inline]
    pub fn begin(&self, fate: Fate, packet: Option<Packet>) -> Option<Packet> {
        self.count_begun(fate, 1, usize::from(packet.is_some()));
        packet
    }

    /// Delivers what this call has emitted so far, if packets are processed one by one, before the call continues, as
    /// Click does; also if it is as much as an element that limits batches allows. Only for elements that no packet is pushed to
    /// and that no element pulls from, so that no packet can return to them during the call.
    pub fn deliver_singly(&mut self) {
        let limit = self.batch_limit();
        let is_limited = limit == 1 || self.resources.batch_limits.is_any();
        if is_limited && self.emitted() > 0 && self.outputs.emitted_packets() >= limit {
            self.runtime.deliver(self.element.index, self.outputs);
        }
    }

    /// Another packet with the same bytes. If the pool is exhausted, the copy is counted as lost.
    #[inline]
    pub fn duplicate(&self, packet: &Packet) -> Option<Packet> {
        self.begin(Fate::Copied, packet.duplicate())
    }

    /// Packets with the same bytes as those of a batch, in the same order. Copies for which the pool has no room are counted as
    /// lost.
    pub fn duplicate_all(&mut self, batch: &Batch) -> Batch {
        let mut copies = self.batch();
        batch.duplicate_to(&mut copies);
        self.count_begun(Fate::Copied, batch.len(), copies.len());
        copies
    }

    /// Whether each output fills separate batches, so that nothing shows in which order a call emits to different outputs.
    #[inline]
    pub fn fills_batches_apart(&self) -> bool {
        self.element.scatters()
    }

    /// The packet pool.
    pub fn pool(&self) -> &Pool {
        &self.resources.pool
    }

    /// An empty batch with memory.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.outputs.batch()
    }

    /// Takes back an empty batch's memory.
    #[inline]
    pub fn recycle(&mut self, batch: Batch) {
        debug_assert!(batch.is_empty(), "{} ends packets without a fate", self.element.class_name());
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
        self.runtime.schedule(self.element.index);
    }

    /// Takes the task off the run queue.
    pub fn unschedule(&self) {
        self.runtime.unschedule(self.element.index);
    }

    /// Whether the task is on the run queue.
    pub fn is_scheduled(&self) -> bool {
        self.runtime.is_scheduled(self.element.index)
    }

    /// How many consecutive turns the task may take at once: more than one if no other task is waiting.
    #[inline]
    pub fn take_turns(&self) -> usize {
        self.runtime.take_turns(self.element.index)
    }

    /// The same for a source that sends at most one packet a turn: more than one also if other tasks take these packets from
    /// queues, and nothing shows that the tasks do not alternate.
    pub fn take_paced_turns(&self) -> usize {
        self.runtime.take_paced_turns(self.element.index)
    }

    /// Further turns that a task, which took all that `take_paced_turns` gave, may take in the same call: some where many
    /// outputs gather packets. What it has emitted so far is delivered. Only for elements that no packet is pushed to and that
    /// no element pulls from.
    pub fn more_turns(&mut self) -> usize {
        self.runtime.more_turns(self.element.index, self.outputs)
    }

    /// For a queue: whether packets that arrive come from several turns of a source, after each of which another task would
    /// have taken the packet of that turn away.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.resources.is_paced.get()
    }

    /// Sets timer number `timer` to a point of steady time, replacing an earlier setting. Timers due at the same time
    /// run in the order in which their spans began. Setting a timer again after it expired continues from the start of
    /// its span.
    pub fn set_timer(&self, timer: usize, at: Timestamp) {
        self.runtime.set_timer(self.element.index, timer, at);
    }

    /// Sets timer number `timer` to expire after `span`.
    pub fn set_timer_after(&self, timer: usize, span: Timestamp) {
        self.runtime.start_timer(self.element.index, timer, self.steady() + span);
    }

    /// Cancels timer number `timer`.
    pub fn clear_timer(&self, timer: usize) {
        self.runtime.clear_timer(self.element.index, timer);
    }

    /// When timer number `timer` expires, if it is set.
    pub fn timer(&self, timer: usize) -> Option<Timestamp> {
        self.runtime.timer(self.element.index, timer)
    }

    /// Sets whether listeners downstream (`Empty`) or upstream (`Full`) should try.
    #[inline]
    pub fn set_signal(&self, direction: Direction, active: bool) {
        self.runtime.set_signal(self.element.index, direction, active);
    }

    /// Finds the notifiers upstream of input `port` and listens to them.
    pub fn upstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element.index, port, Direction::Empty)
    }

    /// Finds the notifiers downstream of output `port` and listens to them.
    pub fn downstream_signal(&self, port: usize) -> Signal {
        self.runtime.signal(self.element.index, port, Direction::Full)
    }

    /// Requests a call of `ready` when the descriptor can be read or written.
    pub fn watch(&self, descriptor: Descriptor, read: bool, write: bool) {
        self.runtime.watch(self.element.index, descriptor, read, write);
    }
}

/// Other elements.
impl Context<'_> {
    /// Reads a handler; the path is resolved relative to this element.
    pub fn read_handler(&self, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.runtime.read_handler(self.element.index, path, parameter)
    }

    /// Writes a handler at once. Fails as busy if its element is being called: see `defer_write`.
    pub fn write_handler(&self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.runtime.write_handler(self.element.index, path, value)
    }

    /// Writes a handler like [`write_handler`](Self::write_handler), unless the write is long: then it begins, and this
    /// returns where. The caller calls [`continue_write`](Self::continue_write) between batches until it is done.
    pub fn begin_write(&self, path: &str, value: String) -> Result<Option<HandlerTarget>, HandlerError> {
        self.runtime.begin_write(self.element.index, path, value)
    }

    /// Continues a write that has begun. Returns its result when it is done.
    pub fn continue_write(&self, target: &HandlerTarget) -> Option<Result<(), HandlerError>> {
        self.runtime.continue_write(target)
    }

    /// Reads a handler of all shards as one value, or that of one shard; the path is resolved relative to this element.
    pub fn read_shards(
        &self,
        path: &str,
        parameter: &str,
        shard: Option<u32>,
    ) -> Result<String, HandlerError> {
        self.runtime.read_shards(self.element.index, path, parameter, shard)
    }

    /// Writes a handler in all shards, as `write_handler` does in one.
    pub fn write_shards(&self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.runtime.write_shards(self.element.index, path, value)
    }

    /// Writes a handler once this call has ended; a failure is logged.
    pub fn defer_write(&self, path: &str, value: &str) {
        let write = DeferredWrite { from: self.element.index, path: path.into(), value: value.into() };
        self.resources.deferred.write(write);
    }

    /// Records a new value of an argument, so that `config` shows it at its position or after its keyword.
    pub fn record_argument(&self, position: Option<usize>, keyword: &str, value: &str) {
        self.element.record_argument(position, keyword, value);
    }

    /// Records a new configuration, without side effects.
    pub fn record_configuration(&self, config: &str) {
        self.element.record_config(config);
    }

    /// Records a new configuration without copying it, without side effects.
    pub fn record_owned_configuration(&self, config: String) {
        self.element.record_owned_config(config);
    }

    /// The text of the element's configuration.
    pub fn configuration(&self) -> String {
        self.element.config().clone()
    }

    /// The `T` exported by the element called `name`, as seen from this element.
    pub fn import<T: 'static>(&self, name: &str) -> Option<Rc<T>> {
        let element = self.runtime.find(self.element.index, name)?;
        self.runtime.export(element)?.downcast().ok()
    }
}

/// The router as a whole.
impl Context<'_> {
    /// Decrements the driver's count; the driver stops at 0. If the class works in the first shard only, the other shards stop with
    /// it: they have nothing that would stop them.
    pub fn stop(&self) {
        self.driver().stop(1);
        if self.element.class.shards.mode == ShardMode::First
            && !self.driver().is_running()
            && let Some(others) = self.environment().others()
        {
            // Some may have ended.
            let _ = others.write("stop", "");
        }
    }

    /// The driver.
    pub fn driver(&self) -> &Driver {
        &self.resources.driver
    }

    /// Starts a copy of the log for this element. Its `woken` is called when there are lines.
    pub fn tap(&self) -> Rc<LogTap> {
        self.resources.tap(self.element.index)
    }

    /// Restarts every element's own random sequence from one seed.
    pub fn reseed(&self, seed: u64) {
        self.runtime.reseed(seed);
        self.resources.random.stop();
    }

    /// Makes all elements share one random sequence: the one that Click starts from this seed.
    pub fn share_random(&self, seed: u32) {
        self.resources.random.start(seed);
    }

    /// Whether all elements share one random sequence.
    pub fn shares_random(&self) -> bool {
        self.resources.random.is_shared()
    }
}

/// Whether all numbers are this one. They are compared in groups, without a branch for each.
fn are_all(numbers: &[u32], one: u32) -> bool {
    let differs = |some: &[u32]| some.iter().fold(0, |bits, number| bits | number ^ one) != 0;
    let (groups, rest) = numbers.as_chunks::<16>();
    !groups.iter().any(|group| differs(group)) && !differs(rest)
}
