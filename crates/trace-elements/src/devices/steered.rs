//! What `ToNext`, `ToService`, `ToPort`, `ToChain` and `ToLookup` share: packets that a function sends to one place.

use core::marker::PhantomData;

use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, Direction, IoError, NextHop};

/// The arguments of an element that sends packets to one place.
pub trait SteeredArguments: Args + 'static {
    /// The port that packets are sent through, and where they go from there.
    #[doc(hidden)]
    fn into_place(self) -> Result<(u8, NextHop), SetupError>;
}

/// The element behind all of them.
pub struct SteeredElement<A>(Steered, PhantomData<A>);

impl<A: SteeredArguments> Element for SteeredElement<A> {
    type Args = A;

    fn new(args: A, _: &mut Setup) -> Result<Self, SetupError> {
        let (port, next) = args.into_place()?;
        Ok(Self(Steered::new(port, next), PhantomData))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.0.open(cx)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.0.push(cx, batch);
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        self.0.ready(cx, descriptor);
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.0.close();
    }
}

/// The sending side of a port of a steering switch.
struct Steered {
    port: String,
    next: NextHop,
    device: Option<Box<dyn Device>>,
    last_error: Option<IoError>,
}

impl Steered {
    fn new(port: u8, next: NextHop) -> Steered {
        Steered { port: port.to_string(), next, device: None, last_error: None }
    }

    /// Opens the port.
    fn open(&mut self, cx: &Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Steered { port: self.port.clone(), next: self.next.clone() };
        let opened = cx.environment().device(&request).map_err(|error| match error {
            // It is about where packets go, whatever port they leave through.
            IoError::Denied(text) => SetupError::new(text),
            error => SetupError::new(format_args!("port {}: {error}", self.port)),
        });
        self.device = Some(opened?);
        Ok(())
    }

    /// Sends packets as far as there is room, and drops the others.
    fn push(&mut self, cx: &mut Context, mut batch: Batch) {
        let Some(device) = &mut self.device else { return };
        let mut reason = Reason::FULL;
        while !batch.is_empty() {
            let before = batch.len();
            let result = device.send(&mut batch);
            let count = before - batch.len();
            let refused = device.take_refused().min(count);
            cx.count(Fate::Delivered, count - refused);
            cx.count_drops(Reason::TOO_LONG, refused as u64);
            if result.is_err() {
                super::report(cx, &self.port, result, &mut self.last_error);
                reason = Reason::NOT_SENT;
                break;
            }
            if count == 0 {
                break;
            }
        }
        if batch.is_empty() {
            return cx.recycle(batch);
        }
        device.count_full(batch.len() as u64);
        let descriptor = device.descriptor();
        cx.drop_batch(batch, reason);
        // Unlimited sources stop until there is room.
        if let Some(descriptor) = descriptor {
            cx.set_signal(Direction::Full, false);
            cx.watch(descriptor, false, true);
        }
    }

    /// There is room again.
    fn ready(&self, cx: &mut Context, descriptor: Descriptor) {
        cx.watch(descriptor, false, false);
        cx.set_signal(Direction::Full, true);
    }

    fn close(&mut self) {
        self.device = None;
    }
}
