//! `ToHost`: sends frames to the host's kernel.

use element::IoError;
use element::prelude::*;

use super::fromhost::SharedInterface;
use super::tunnel::ETHERNET_LENGTH;

/// Sends Ethernet frames to the host's kernel through the interface of the FromHost with the same DEVNAME.
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
#[derive(Args)]
#[element(
    name = "ToHost",
    group = "devices",
    ports = "1/0",
    processing = "h/",
    phase = "late",
    see = "FromHost, KernelTap",
    drops = "too_short, not_sent, closed",
    fates = "delivered"
)]
pub struct ToHostArgs {
    /// Name of the interface.
    #[arg(position)]
    devname: String,
}

pub struct ToHost {
    name: String,
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
        Ok(ToHost { name: args.devname, shared: None, drops: 0, last_error: None })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        let mut interfaces = (0..runtime.element_count())
            .filter_map(|element| runtime.export(element)?.downcast::<SharedInterface>().ok());
        self.shared = interfaces.find(|shared| shared.name == self.name);
        if self.shared.is_none() {
            let name = &self.name;
            let problem = format!("ToHost({name}) requires an initialized FromHost with the same dev_name");
            return Err(SetupError::new(problem));
        }
        Ok(())
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
