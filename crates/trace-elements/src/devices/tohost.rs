//! `ToHost`: sends frames to the host's kernel.

use core::any::Any;
use core::cell::RefCell;

use element::arguments::Word;
use element::prelude::*;
use element::{DeviceRequest, IoError};

use super::fromhost::SharedInterface;
use super::names::TO_HOST;
use super::tunnel::ETHERNET_LENGTH;

/// Sends Ethernet frames to the host's kernel through the interface of the FromHost with the same DEVNAME.
///
/// Without DEVNAME, it uses the interface of the only FromHost. If there is none, it opens the device `host`, and with
/// SNIFFERS the device `sniffers`: an interface for programs such as tcpdump. `clickbox run --device host=tap:tap0` says
/// which interfaces these are. Frames that the kernel sends to them are not read. With SNIFFERS and the DEVNAME of a
/// FromHost, it uses that interface.
///
/// The kernel accepts frames for the interface's Ethernet address and broadcasts. Frames without a complete Ethernet
/// header are dropped as `too_short`, and frames that cannot be written as `not_sent`.
/// ```click
/// // Pings the host, whose Ethernet address an ARPQuerier finds out.
/// ICMPPingSource(10.9.0.2, 10.9.0.1, INTERVAL 0.1, LIMIT 3, VERBOSE false)
///     -> arp :: ARPQuerier(10.9.0.2/24, 2:2:2:2:2:2);
/// arp -> to :: ToHost(fake0);
/// FromHost(fake0, 10.9.0.1/24) -> kind :: Classifier(12/0806 20/0002, 12/0800, -);
/// kind[0] -> [1]arp;
/// kind[1] -> Strip(14) -> CheckIPHeader -> replies :: Counter -> Discard;
/// kind[2] -> Discard;
/// ```
/// ```expect
/// replies.count = 3
/// arp.responses = 1
/// to.drops = 0
/// ```
/// ## Differences
/// The class ToHostSniffers, and SNIFFERS, are those of Click in the Linux kernel. TYPE must be ETHER.
#[derive(Args)]
#[element(
    name = "ToHost",
    other_names = "TO_HOST",
    group = "devices",
    ports = "1/0",
    processing = "h/",
    phase = "late",
    logs,
    see = "FromHost, KernelTap",
    drops = "too_short, not_sent, closed",
    fates = "delivered"
)]
pub struct ToHostArgs {
    /// Name of the interface.
    #[arg(position)]
    devname: Option<String>,
    /// Send the frames only to programs that watch the interface `sniffers`.
    #[arg(default = "false")]
    sniffers: bool,
    /// Kind of the packets: ETHER.
    r#type: Option<Word>,
}

/// The device without a FromHost.
const HOST: &str = "host";
/// The device of SNIFFERS.
const SNIFFERS: &str = "sniffers";

pub struct ToHost {
    name: String,
    /// Whether the interface of the only FromHost is meant.
    any: bool,
    /// The DEVNAME, with SNIFFERS.
    watched: Option<String>,
    shared: Option<Rc<SharedInterface>>,
    drops: u64,
    last_error: Option<IoError>,
}

impl Element for ToHost {
    type Args = ToHostArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("dev_name", "Name of the interface.", |to| to.name.clone()),
        Handler::read("drops", "Packets that could not be written.", |to| to.drops.to_string()),
    ];

    fn new(args: ToHostArgs, _: &mut Setup) -> Result<ToHost, SetupError> {
        if args.r#type.is_some_and(|kind| kind.0 != "ETHER") {
            return Err(SetupError::argument("TYPE", "only ETHER is possible"));
        }
        let any = args.devname.is_none() && !args.sniffers;
        let (name, watched) = match args.devname {
            devname if args.sniffers => (SNIFFERS.to_string(), devname),
            devname => (devname.unwrap_or_else(|| HOST.to_string()), None),
        };
        Ok(ToHost { name, any, watched, shared: None, drops: 0, last_error: None })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        let interfaces: Vec<_> = (0..runtime.element_count())
            .filter_map(|element| runtime.export(element)?.downcast::<SharedInterface>().ok())
            .collect();
        let of_host = |shared: &&Rc<SharedInterface>| self.watched.as_ref() == Some(&shared.name);
        let named = interfaces
            .iter()
            .find(of_host)
            .or_else(|| interfaces.iter().find(|shared| shared.name == self.name));
        if let Some(shared) = named {
            self.name.clone_from(&shared.name);
        }
        let mut others = interfaces.iter().filter(|shared| shared.name != SNIFFERS);
        let only = others.next().filter(|_| self.any && others.next().is_none());
        self.shared = named.or(only).cloned();
        if self.shared.is_none() && [HOST, SNIFFERS].contains(&&*self.name) {
            let request = DeviceRequest::Tunnel {
                ethernet: true,
                name: self.name.clone(),
                address: None,
                link: None,
                gateway: None,
                mtu: 0,
            };
            let device = RefCell::new(super::open(cx, &self.name, &request)?);
            self.shared = Some(Rc::new(SharedInterface { name: self.name.clone(), device }));
        }
        if self.shared.is_none() {
            let name = &self.name;
            let problem = format!("ToHost({name}) requires an initialized FromHost with the same dev_name");
            return Err(SetupError::new(problem));
        }
        Ok(())
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        self.shared.clone().map(|shared| shared as Rc<dyn Any>)
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let Some(shared) = self.shared.clone() else { return cx.drop_batch(batch, Reason::CLOSED) };
        for packet in batch.drain() {
            if packet.len() < ETHERNET_LENGTH {
                cx.log("ToHost: packet too small");
                cx.drop(packet, Reason::TOO_SHORT);
                continue;
            }
            let mut one = cx.batch();
            one.push(packet);
            let result = shared.device.borrow_mut().send(&mut one);
            super::report(cx, &self.name, result, &mut self.last_error);
            self.drops += one.len() as u64;
            cx.count(Fate::Delivered, usize::from(one.is_empty()));
            cx.drop_batch(one, Reason::NOT_SENT);
        }
        cx.recycle(batch);
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.shared = None;
    }
}
