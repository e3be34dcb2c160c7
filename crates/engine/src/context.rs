//! The state that all configurations of a box share: platform, clock, ports, files, and events.

use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::error::EngineError;
use crate::events::Events;
use crate::limits::{DEFAULT_POOL_PACKETS, MIN_POOL_PACKETS, POOL_BYTES_PER_PACKET};
use crate::port::Port;
use crate::quota::Quota;
use crate::spread::Spread;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use boundary::{BootInfo, BufferLeases, CorruptIndex, Mapped, Platform, StatusPage};
use core::cell::{Cell, RefCell};
use element::Shard;
use packet::{Pool, Timestamp};
use router::Registry;

/// The context of the configurations of a box.
pub(crate) struct BoxContext {
    pub(crate) platform: Rc<dyn Platform>,
    /// The classes that configurations may use.
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) ports: Vec<Port>,
    /// The buffers of the ports' packets.
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) files: RefCell<BTreeMap<String, Rc<[u8]>>>,
    pub(crate) events: RefCell<Events>,
    /// What configurations may send packets to, if the box is an instance of a service.
    pub(crate) destinations: RefCell<Vec<String>>,
    /// Variables of configurations that the host defines.
    pub(crate) parameters: RefCell<Vec<(String, String)>>,
    /// Which of the boxes it is that run one configuration together.
    pub(crate) shard: Cell<Shard>,
    /// How packets are spread over these.
    pub(crate) spread: RefCell<Spread>,
    /// The packets of all configurations.
    pub(crate) pool: Pool,
    /// Four random words, and the number of seeds derived from them.
    seeds: Cell<([u64; 4], u64)>,
    pub(crate) quota: Quota,
    status: StatusPage<Mapped>,
    /// Packets that elements created when they were initialized and keep, such as those that sources send copies of.
    template_packets: Cell<usize>,
    /// Whether a configuration has asked for the address of a port.
    mac_used: Cell<bool>,
    /// An invalid value that the host stored in a ring.
    fault: Cell<Option<CorruptIndex>>,
}

impl BoxContext {
    pub(crate) fn new(
        info: &BootInfo,
        pages: &Mapped,
        leases: BufferLeases,
        status: StatusPage<Mapped>,
        platform: Rc<dyn Platform>,
        registry: Registry,
        events: Events,
    ) -> Result<BoxContext, EngineError> {
        let pairs = (info.pairs as usize).max(1);
        let ports = info.ports.chunks(pairs).enumerate();
        let ports = ports.map(|(number, info)| Port::new(pages, info).ok_or(EngineError::Port(number)));
        // Half of the heap is for packets; configurations, tables and files use the rest.
        let packets = match platform.heap_use().size {
            0 => DEFAULT_POOL_PACKETS,
            size => (size / 2 / POOL_BYTES_PER_PACKET).max(MIN_POOL_PACKETS),
        };
        Ok(BoxContext {
            clock: Clock::new(info),
            ports: ports.collect::<Result<_, _>>()?,
            buffers: RefCell::new(Buffers::new(leases, pairs)),
            files: RefCell::default(),
            events: RefCell::new(events),
            destinations: RefCell::default(),
            parameters: RefCell::default(),
            shard: Cell::new(Shard::ONLY),
            spread: RefCell::default(),
            pool: Pool::new(packets),
            seeds: Cell::new((info.seeds, 0)),
            quota: Quota::new(status),
            status,
            template_packets: Cell::new(0),
            mac_used: Cell::new(false),
            fault: Cell::new(None),
            platform,
            registry,
        })
    }

    /// Switches to the boot info of a copy.
    pub(crate) fn set_boot_info(&self, info: &BootInfo) {
        self.clock.set(info);
        self.seeds.set((info.seeds, 0));
        for (port, info) in self.ports.iter().zip(info.ports.iter().step_by((info.pairs as usize).max(1))) {
            port.set_mac(info);
        }
    }

    /// Sets the number of packets that elements created when they were initialized and keep.
    pub(crate) fn set_template_packets(&self, packets: usize) {
        self.template_packets.set(packets);
    }

    /// Reports to the host how many packets are in the box, in case it ends before they leave. This costs one store per
    /// batch.
    #[inline]
    pub(crate) fn publish_packets_held(&self) {
        self.status.set_packets_held(self.pool.packets().saturating_sub(self.template_packets.get()) as u64);
    }

    /// The address of a port, for a configuration that uses it.
    pub(crate) fn address(&self, port: &Port) -> [u8; 6] {
        self.mac_used.set(true);
        port.mac()
    }

    /// Whether a configuration has asked for the address of a port.
    pub(crate) fn is_mac_used(&self) -> bool {
        self.mac_used.get()
    }

    /// Wall-clock time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.wall(self.platform.cycles())
    }

    /// Monotonic time.
    pub(crate) fn steady(&self) -> Timestamp {
        self.clock.steady(self.platform.cycles())
    }

    /// A random number that differs for every call and every start of a box.
    pub(crate) fn seed(&self) -> u64 {
        let (seeds, count) = self.seeds.get();
        self.seeds.set((seeds, count + 1));
        let [first, second, third, fourth] = seeds;
        let mut mixed = first ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in [second, third, fourth] {
            mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93).wrapping_add(word);
        }
        mixed ^ (mixed >> 32)
    }

    /// Whether the box must end its turn.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.quota.is_over(&*self.platform)
    }

    /// Records an error after which the engine cannot continue.
    pub(crate) fn fail(&self, corrupt: CorruptIndex) {
        self.fault.set(Some(corrupt));
    }

    pub(crate) fn fault(&self) -> Result<(), EngineError> {
        self.fault.get().map_or(Ok(()), |corrupt| Err(EngineError::Ring(corrupt)))
    }
}
