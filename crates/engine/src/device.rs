//! One side of a port, as a device for elements.

use crate::context::BoxContext;
use crate::port::{Port, Side};
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use boundary::{Answer, CorruptIndex, MAX_DESTINATION};
use element::{Descriptor, Device, DeviceRequest, IoError, NextHop};
use packet::{Batch, MAX_BATCH, Pool};

/// With fewer spare buffers than this, a separate visit is not worthwhile.
const MIN_SPARE_BUFFERS: usize = 16;

/// One side of a port.
struct PortDevice {
    context: Rc<BoxContext>,
    number: usize,
    side: Side,
    /// The answer for each sent packet.
    answer: Answer,
    /// Reserves the side for this device.
    _reservation: Rc<()>,
}

/// The descriptor of a port's side.
fn descriptor(number: usize, side: Side) -> Descriptor {
    Descriptor(2 * number as i32 + i32::from(side == Side::Transmit))
}

/// The port and side of a descriptor.
pub(crate) fn port_and_side(descriptor: Descriptor) -> (usize, Side) {
    let number = usize::try_from(descriptor.0 / 2).unwrap_or(usize::MAX);
    (number, if descriptor.0 % 2 == 0 { Side::Receive } else { Side::Transmit })
}

/// Opens a port for a router of a configuration.
pub(crate) fn open(
    context: &Rc<BoxContext>,
    configuration: &str,
    router_number: u64,
    request: &DeviceRequest,
) -> Result<Box<dyn Device>, IoError> {
    let (name, receive, answer) = match request {
        DeviceRequest::Interface { name, receive, .. } => (name, *receive, None),
        DeviceRequest::Steered { port, next } => (port, false, Some(resolve(context, next)?)),
        _ => return Err(IoError::Unsupported("a device of the host")),
    };
    let count = context.ports.len();
    let port = name.parse::<usize>().ok().and_then(|number| Some((number, context.ports.get(number)?)));
    let Some((number, port)) = port else {
        return Err(IoError::NotFound(match count {
            0 => "this box has no ports: attach one (--attach)".into(),
            1 => "this box has one port: 0".into(),
            _ => format!("this box has ports 0 to {}", count - 1),
        }));
    };
    let (side, used) = if receive { (Side::Receive, "read") } else { (Side::Transmit, "written") };
    let reservation = port.reserve(side, configuration, router_number, answer.is_some()).map_err(|user| {
        IoError::Failed(match user == configuration {
            true => format!("it is already {used} by another element"),
            false if user.is_empty() => {
                format!("it is already {used} by the main configuration")
            }
            false => format!("it is already {used} by the configuration ‘{user}’"),
        })
    })?;
    let answer = answer.unwrap_or_default();
    Ok(Box::new(PortDevice { context: context.clone(), number, side, answer, _reservation: reservation }))
}

/// The answer that sends packets where an element says.
fn resolve(context: &BoxContext, next: &NextHop) -> Result<Answer, IoError> {
    let destinations = context.destinations.borrow();
    let find = |destination: &str, what: &str| {
        let number = destinations.iter().position(|known| known == destination);
        let number = number.and_then(|number| u16::try_from(number).ok());
        number.filter(|number| *number <= MAX_DESTINATION).ok_or_else(|| {
            let name = destination.split_once(':').map_or(destination, |(_, name)| name);
            IoError::Denied(format!(
                "this box may not send to {what} ‘{name}’: create its service with --may-send-to {destination} \
                 (`may_send_to` in a stack)"
            ))
        })
    };
    Ok(match next {
        NextHop::Chain => Answer::Next,
        NextHop::Service(name) => Answer::Service(find(name, "a service")?),
        NextHop::Port(name) => Answer::Port(find(&format!("port:{name}"), "a port")?),
        NextHop::IntoChain { name, flow } => {
            let number = find(&format!("chain:{name}"), "a chain")?;
            if *flow { Answer::FlowChain(number) } else { Answer::Chain(number) }
        }
        NextHop::LookUp => Answer::LookUp,
    })
}

impl PortDevice {
    /// Takes packets out of the rings of a port, from each pair in its turn.
    fn receive_all(
        &self,
        port: &Port,
        pool: &Pool,
        most: usize,
        into: &mut Batch,
    ) -> Result<(), CorruptIndex> {
        let before = into.len();
        for _ in 0..port.pairs() {
            let taken = into.len() - before;
            if taken >= most {
                break;
            }
            self.receive_batch(port, pool, most - taken, into)?;
        }
        Ok(())
    }

    /// Takes packets out of a ring, after collecting spare buffers to leave in their place.
    fn receive_batch(
        &self,
        port: &Port,
        pool: &Pool,
        most: usize,
        into: &mut Batch,
    ) -> Result<(), CorruptIndex> {
        let context = &self.context;
        let pair = port.next_pair();
        let waiting = port.waiting(pair, most)?;
        if waiting == 0 {
            return Ok(());
        }
        let mut buffers = context.buffers.borrow_mut();
        buffers.serve(pair);
        buffers.reclaim(waiting, pool);
        for port in &context.ports {
            if buffers.spare_count() >= waiting {
                break;
            }
            port.borrow_spares(pair, waiting, &mut buffers)?;
        }
        // Packets without a spare buffer would be copied. They can wait for the next visit, when these packets have
        // left.
        let waiting = if buffers.spare_count() < MIN_SPARE_BUFFERS {
            waiting
        } else {
            waiting.min(buffers.spare_count())
        };
        port.receive(pair, &mut buffers, pool, waiting, context.now(), into)?;
        self.publish(port);
        Ok(())
    }

    /// Publishes received or sent packets to the host. Before it is woken, the number of packets in the box is updated,
    /// so that each packet is counted once if the box ends meanwhile.
    fn publish(&self, port: &Port) {
        self.context.publish_packets_held();
        port.publish(self.side, &*self.context.platform);
    }

    fn ring_error(&self, corrupt: CorruptIndex) -> IoError {
        self.context.fail(corrupt);
        IoError::Failed(corrupt.to_string())
    }
}

impl Device for PortDevice {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let Some(port) = self.context.ports.get(self.number) else { return Ok(()) };
        let before = into.len();
        self.receive_all(port, pool, most, into).map_err(|corrupt| self.ring_error(corrupt))?;
        self.context.quota.count_received(into.len() - before);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        let Some(port) = self.context.ports.get(self.number) else { return Ok(()) };
        let before = batch.len();
        let mut buffers = self.context.buffers.borrow_mut();
        port.send(&mut buffers, batch, self.answer).map_err(|corrupt| self.ring_error(corrupt))?;
        self.context.quota.count_sent(before - batch.len());
        self.publish(port);
        Ok(())
    }

    fn take_refused(&mut self) -> usize {
        self.context.ports.get(self.number).map_or(0, |port| port.take_refused())
    }

    fn burst(&self) -> usize {
        MAX_BATCH
    }

    fn count_full(&mut self, count: u64) {
        if let Some(port) = self.context.ports.get(self.number) {
            port.count_full(count);
            self.context.quota.count_sent(usize::try_from(count).unwrap_or(usize::MAX));
        }
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(descriptor(self.number, self.side))
    }

    fn name(&self) -> String {
        self.number.to_string()
    }

    fn lost(&self) -> u64 {
        self.context.ports.get(self.number).map_or(0, |port| port.no_buffer())
    }

    fn link(&self) -> Option<[u8; 6]> {
        self.context.ports.get(self.number).map(|port| self.context.address(port))
    }
}
