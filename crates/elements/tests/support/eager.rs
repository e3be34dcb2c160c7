//! `Eager`: sends packets before the other elements are initialised.

use element::prelude::*;
use router::Registry;

/// Sends COUNT packets when it is initialised. Elements after it in the configuration are not initialised yet.
#[derive(Args)]
#[element(
    name = "Eager",
    group = "testing",
    ports = "0/1",
    processing = "h/h",
    phase = "names",
    fates = "made"
)]
struct EagerArgs {
    /// The number of packets.
    #[arg(position)]
    count: u32,
}

struct Eager {
    count: u32,
}

impl Element for Eager {
    type Args = EagerArgs;

    fn new(args: EagerArgs, _: &mut Setup) -> Result<Eager, SetupError> {
        Ok(Eager { count: args.count })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for _ in 0..self.count {
            if let Some(packet) = cx.packet(&[0; 60]) {
                cx.send(0, packet);
            }
        }
        Ok(())
    }
}

/// The registry of all classes and `Eager`.
pub(crate) fn registry() -> Registry {
    let eager: &'static [Class] = Box::leak(Box::new([Class::of::<Eager>()]));
    let groups = [elements::REGISTRY, &[eager]].concat();
    Registry::new(Box::leak(groups.into_boxed_slice()))
}
