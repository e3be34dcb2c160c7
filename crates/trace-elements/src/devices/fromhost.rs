//! `FromHost`: receives frames from the host's kernel, over a virtual interface that it creates.

use core::any::Any;
use core::cell::RefCell;
use core::net::Ipv4Addr;

use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, IoError, Signal};
use packet::{Ip4Prefix, Ip4View, MacAddr};

use super::tunnel::{ETHERNET_LENGTH, address, check_arguments};

/// Creates a virtual network interface, and receives the Ethernet frames that the host's kernel sends to it.
///
/// The host's side of the interface has the address DST and the Ethernet address ETHER. Without DST it gets no address
/// and stays down. GATEWAY sets the host's default route. The interface exists as long as the router. A ToHost with the
/// same DEVNAME sends frames to the kernel. The network header annotation is set behind the Ethernet header, and the
/// destination annotation is set, as if each frame contained an IP header.
///
/// KernelTap combines both directions in one element.
/// ```click
/// // Asks the host for its Ethernet address.
/// InfiniteSource(DATA \<ffffffffffff 020202020202 0806 0001 0800 06 04 0001
///                       020202020202 0a090002 000000000000 0a090001>, LIMIT 1) -> ToHost(fake0);
/// FromHost(fake0, 10.9.0.1/24) -> answers :: Classifier(12/0806 20/0002 28/0a090001, -);
/// answers[0] -> c :: Counter -> Discard;
/// answers[1] -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// c.byte_count = 42
/// ```
/// ## Differences
/// Every task run reads all frames that have arrived. HEADROOM is at least 28. Frames too short for an IP header are
/// not marked.
#[derive(Args)]
#[element(
    name = "FromHost",
    group = "devices",
    ports = "0/1",
    processing = "/h",
    logs,
    see = "ToHost, KernelTap",
    fates = "received"
)]
pub struct FromHostArgs {
    /// Name of the interface.
    #[arg(position)]
    devname: String,
    /// Address and network of the host's side.
    #[arg(position)]
    dst: Option<Ip4Prefix>,
    /// Gateway of the host's default route.
    gateway: Option<Ipv4Addr>,
    /// Ethernet address of the host's side; chosen by the system by default.
    ether: Option<MacAddr>,
    /// Headroom of packets in bytes, at most 8192.
    #[arg(default = "28")]
    headroom: u32,
    /// Maximum bytes of a frame to keep.
    #[arg(default = "2048")]
    mtu: u32,
}

/// The interface, shared by the elements with its name.
pub(super) struct SharedInterface {
    pub(super) name: String,
    pub(super) device: RefCell<Box<dyn Device>>,
}

pub struct FromHost {
    args: FromHostArgs,
    shared: Option<Rc<SharedInterface>>,
    /// Whether there is room downstream.
    signal: Signal,
    last_error: Option<IoError>,
}

impl Element for FromHost {
    type Args = FromHostArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("dev_name", "Name of the interface.", |from| {
            from.shared.as_ref().map_or_else(|| from.args.devname.clone(), |shared| shared.name.clone())
        }),
        Handler::read("signal", "Whether there is room for packets downstream.", |from| {
            from.signal.is_active().to_string()
        }),
    ];

    fn new(mut args: FromHostArgs, _: &mut Setup) -> Result<FromHost, SetupError> {
        args.dst = args.dst.filter(|network| !network.address.is_unspecified());
        args.gateway = check_arguments(args.dst, args.gateway, args.headroom)?;
        if args.devname.is_empty() {
            return Err(SetupError::new("must specify device name"));
        }
        Ok(FromHost { args, shared: None, signal: Signal::BUSY, last_error: None })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Tunnel {
            ethernet: true,
            name: self.args.devname.clone(),
            address: self.args.dst.map(address),
            link: self.args.ether.map(|link| link.0),
            gateway: self.args.gateway,
            mtu: 0,
        };
        let device = super::open(cx, &self.args.devname, &request)?;
        self.signal = cx.downstream_signal(0);
        if let Some(descriptor) = device.descriptor() {
            cx.watch(descriptor, true, false);
        }
        self.shared = Some(Rc::new(SharedInterface { name: device.name(), device: RefCell::new(device) }));
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        let Some(shared) = &self.shared else { return };
        let (mut batch, most) = (cx.batch(), cx.batch_limit());
        let result = shared.device.borrow_mut().receive(cx.pool(), most, &mut batch);
        super::report(cx, &shared.name, result, &mut self.last_error);
        cx.count(Fate::Received, batch.len());
        for mut packet in batch.drain() {
            packet.truncate(self.args.mtu as usize);
            packet.set_timestamp(cx.now());
            packet.set_mac(0);
            let header = packet.data().get(ETHERNET_LENGTH..).and_then(Ip4View::new);
            if let Some((length, destination)) = header.map(|ip| (ip.header_length(), ip.destination())) {
                packet.set_network(ETHERNET_LENGTH as isize, length);
                packet.set_destination_ip(destination);
            }
            cx.send(0, packet);
        }
        cx.recycle(batch);
        if !self.signal.is_active() || shared.device.borrow().has_ended() {
            cx.watch(descriptor, false, false);
        }
    }

    fn woken(&mut self, cx: &mut Context) {
        let descriptor = self.shared.as_ref().and_then(|shared| shared.device.borrow().descriptor());
        if let Some(descriptor) = descriptor {
            cx.watch(descriptor, true, false);
        }
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        self.shared.clone().map(|shared| shared as Rc<dyn Any>)
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.shared = None;
    }
}
