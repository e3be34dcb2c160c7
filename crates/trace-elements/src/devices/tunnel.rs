//! Virtual interfaces: the element behind `KernelTun` and `KernelTap`, and helpers for `FromHost` and `ToHost`.

use core::marker::PhantomData;
use core::net::Ipv4Addr;

use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, IoError, Signal};
use packet::{Ip4Prefix, MacAddr};

use crate::trace::link;
use capture::LinkType;

/// Length of an Ethernet header, which the MTU excludes.
pub(super) const ETHERNET_LENGTH: usize = 14;
/// Minimum length of an IP header.
const IP_LENGTH: usize = 20;

/// The address and prefix length for an interface.
pub(super) fn address(network: Ip4Prefix) -> (Ipv4Addr, u8) {
    (network.address, network.mask.to_bits().count_ones() as u8)
}

/// Maximum headroom in bytes, as in Click.
const MAX_HEADROOM: u32 = 8192;

/// Checks HEADROOM and GATEWAY. Returns the gateway, which must be in the interface's network, if there is one.
pub(super) fn check_arguments(
    network: Option<Ip4Prefix>,
    gateway: Option<Ipv4Addr>,
    headroom: u32,
) -> Result<Option<Ipv4Addr>, SetupError> {
    let gateway = gateway.filter(|gateway| !gateway.is_unspecified());
    if let (Some(network), Some(gateway)) = (network, gateway)
        && !network.contains(gateway)
    {
        return Err(SetupError::new("bad GATEWAY"));
    }
    if headroom > MAX_HEADROOM {
        return Err(SetupError::new("HEADROOM too large"));
    }
    Ok(gateway)
}

/// The arguments of either element.
pub trait TunnelArguments: Args {
    /// The common arguments, and whether the interface carries Ethernet frames.
    #[doc(hidden)]
    fn into_common(self) -> (CommonArguments, bool);
}

/// The common arguments of both elements.
#[doc(hidden)]
#[derive(ArgumentGroup)]
pub struct CommonArguments {
    /// Address and network of the host's side.
    #[arg(position)]
    addr: Ip4Prefix,
    /// Gateway of the host's default route.
    #[arg(position)]
    gateway: Option<Ipv4Addr>,
    /// Headroom of packets in bytes, at most 8192.
    #[arg(default = "28")]
    headroom: u32,
    /// Maximum packets to write per task run.
    #[arg(default = "1")]
    burst: i32,
    /// Ethernet address of the host's side.
    #[arg(default = "00:01:02:03:04:05")]
    ether: MacAddr,
    /// Log repeated failures only once.
    #[arg(default = "false")]
    ignore_queue_overflows: bool,
    /// Maximum packet length in bytes, without an Ethernet header.
    #[arg(default = "1500")]
    mtu: u32,
    /// Name of the interface; chosen by the system by default.
    devname: Option<String>,
    /// Older name of DEVNAME.
    dev_name: Option<String>,
}

/// An element connected to a virtual interface.
pub struct TunnelDevice<A> {
    args: CommonArguments,
    name: String,
    ethernet: bool,
    device: Option<Box<dyn Device>>,
    signal: Signal,
    calls: u64,
    packets: u64,
    last_error: Option<IoError>,
    arguments: PhantomData<A>,
}

impl<A: TunnelArguments + 'static> Element for TunnelDevice<A> {
    type Args = A;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("dev_name", "Name of the interface.", |tunnel| {
            let device = tunnel.device.as_ref();
            device.map_or_else(|| tunnel.name.clone(), |device| device.name())
        }),
        Handler::read("selected_calls", "Number of times there was something to read.", |tunnel| {
            tunnel.calls.to_string()
        }),
        Handler::read("packets", "Packets read.", |tunnel| tunnel.packets.to_string()),
    ];

    fn new(args: A, _: &mut Setup) -> Result<Self, SetupError> {
        let (mut args, ethernet) = args.into_common();
        args.gateway = check_arguments(Some(args.addr), args.gateway, args.headroom)?;
        if args.burst < 1 {
            return Err(SetupError::new("BURST must be >= 1"));
        }
        if (args.mtu as usize) < IP_LENGTH {
            return Err(SetupError::new(format_args!("MTU must be greater than {IP_LENGTH}")));
        }
        Ok(TunnelDevice {
            name: args.devname.take().or(args.dev_name.take()).unwrap_or_default(),
            args,
            ethernet,
            device: None,
            signal: Signal::BUSY,
            calls: 0,
            packets: 0,
            last_error: None,
            arguments: PhantomData,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Tunnel {
            ethernet: self.ethernet,
            name: self.name.clone(),
            address: Some(address(self.args.addr)),
            link: Some(self.args.ether.0),
            gateway: self.args.gateway,
            mtu: self.args.mtu as usize,
        };
        let device = super::open(cx, if self.ethernet { "tap" } else { "tun" }, &request)?;
        if let Some(descriptor) = device.descriptor() {
            cx.watch(descriptor, true, false);
        }
        self.device = Some(device);
        if cx.inputs() > 0 && !cx.is_push_input(0) {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        self.calls += 1;
        let Some(device) = &mut self.device else { return };
        let (mut batch, most) = (cx.batch(), cx.batch_limit());
        let result = device.receive(cx.pool(), most, &mut batch);
        let name = device.name();
        if device.has_ended() {
            cx.watch(descriptor, false, false);
        }
        if result.is_err() && !self.args.ignore_queue_overflows {
            self.last_error = None;
        }
        super::report(cx, &name, result, &mut self.last_error);
        cx.count(Fate::Received, batch.len());
        for mut packet in batch.drain() {
            self.packets += 1;
            packet.set_timestamp(cx.now());
            if self.ethernet {
                packet.set_mac(0);
                cx.send(0, packet);
                continue;
            }
            match link::ip_header(LinkType::RAW, packet.data()) {
                Some((_, length)) => {
                    packet.set_network(0, length);
                    cx.send(0, packet);
                }
                None if cx.outputs() > 1 => cx.send(1, packet),
                None => cx.drop(packet, Reason::NO_IP_HEADER),
            }
        }
        cx.recycle(batch);
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            self.write(cx, packet);
        }
        cx.recycle(batch);
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let mut batch = cx.batch();
        let count = cx.pull(0, self.args.burst.unsigned_abs() as usize, &mut batch);
        self.push(cx, 0, batch);
        if count > 0 || self.signal.is_active() {
            cx.schedule();
        }
        count > 0
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.device = None;
    }
}

impl<A> TunnelDevice<A> {
    /// Writes a packet to the kernel, and logs an error.
    fn write(&mut self, cx: &mut Context, mut packet: Packet) {
        let Some(device) = &mut self.device else { return cx.drop(packet, Reason::CLOSED) };
        let name = device.name();
        let report = |text: &str| {
            cx.log(&format!("{}({name}): {text}", cx.class_name()));
        };
        let length = if self.ethernet {
            let Some(length) = packet.len().checked_sub(ETHERNET_LENGTH) else {
                report("packet too small");
                return cx.drop(packet, Reason::TOO_SHORT);
            };
            length
        } else {
            let Some(offset) = packet.network_offset().filter(|_| packet.network().len() >= IP_LENGTH) else {
                report("no network header");
                return cx.drop(packet, Reason::NO_NETWORK_HEADER);
            };
            let version = packet.network().first().map_or(0, |byte| byte >> 4);
            if version != 4 && version != 6 {
                report(&format!("unknown IP version {version}"));
                return cx.drop(packet, Reason::BAD_VERSION);
            }
            match usize::try_from(offset) {
                Ok(front) => drop(packet.strip(front)),
                Err(_) => drop(packet.unstrip(offset.unsigned_abs())),
            }
            packet.len()
        };
        if length > self.args.mtu as usize {
            report(&format!("packet larger than MTU ({})", self.args.mtu));
            return cx.drop(packet, Reason::EXCEEDS_MTU);
        }
        let mut one = cx.batch();
        one.push(packet);
        let result = device.send(&mut one);
        if result.is_err() && !self.args.ignore_queue_overflows {
            self.last_error = None;
        }
        super::report(cx, &name, result, &mut self.last_error);
        cx.count(Fate::Delivered, usize::from(one.is_empty()));
        // A packet that can't be written is dropped, as in Click: the kernel's queue is full.
        cx.drop_batch(one, Reason::NOT_SENT);
    }
}
