//! Carries out one order.

use super::controller_reports::controller_report;
use crate::error::OperationError;
use crate::lifecycle::{AccountFilter, Fabric, StartSettings};
use crate::network::ServiceKey;
use protocol::codec;
use protocol::fabric::{Ask, EventPage, FabricError, Order};
use serde_bytes::ByteBuf;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The encoded answer to an order, or why there is none, and the descriptors that come with it.
type Outcome = (Result<ByteBuf, FabricError>, Vec<OwnedFd>);

/// Most entries of a page.
const MAX_PAGE: u32 = 1024;

/// Carries out an order. Descriptors that it does not call for are closed.
pub(super) fn answer(fabric: &Fabric, order: Order, descriptors: Vec<OwnedFd>) -> Outcome {
    let entries = |most: u32| most.min(MAX_PAGE) as usize;
    match order {
        Order::Ping(order) => done(&order, fabric.ping()),
        Order::Inventory(order) => done(&order, fabric.inventory()),
        Order::Facts(order) => done(&order, Ok(fabric.facts())),
        Order::AddSwitch(order) => done(&order, fabric.add_switch(order.definition.clone())),
        Order::ControllerStates(order) => done(&order, fabric.controller_states(order.switch.clone())),
        Order::ControllerReport(order) => done(&order, controller_report(fabric, &order)),
        Order::RemoveSwitch(order) => done(&order, fabric.remove_switch(order.switch.clone())),
        Order::CheckVacant(order) => {
            done(&order, fabric.check_vacant(order.switch.clone(), order.port.clone()))
        }
        Order::AddPort(order) => {
            let instead = order.instead.clone();
            done(&order, fabric.add_port(order.switch.clone(), order.port.clone(), descriptors, instead))
        }
        Order::ReopenPort(order) => {
            let instead = order.instead.clone();
            done(&order, fabric.reopen_port(order.switch.clone(), order.port.clone(), descriptors, instead))
        }
        Order::DuplicateDevice(order) => {
            let device = fabric.device(order.switch.clone(), order.port.clone());
            done_with(&order, device.map(|device| ((), device.into_iter().collect())))
        }
        Order::OpenLink(order) => {
            let opened = fabric.open_link(order.switch.clone(), order.port.clone());
            done_with(&order, opened.map(|descriptors| ((), descriptors.into())))
        }
        Order::JoinLink(order) => {
            done(&order, fabric.join_link(order.switch.clone(), order.port.clone(), descriptors))
        }
        Order::RemovePort(order) => {
            done(&order, fabric.remove_port(order.switch.clone(), order.port.clone()))
        }
        Order::SetAddress(order) => {
            done(&order, fabric.set_address(order.switch.clone(), order.mac, order.port.clone()))
        }
        Order::RemoveAddress(order) => done(&order, fabric.remove_address(order.switch.clone(), order.mac)),
        Order::SetDefault(order) => {
            done(&order, fabric.set_default(order.switch.clone(), order.port.clone()))
        }
        Order::AddFlow(order) => done(&order, fabric.add_flow(order.switch.clone(), order.flow.clone())),
        Order::RemoveFlow(order) => done(&order, fabric.remove_flow(order.switch.clone(), order.id)),
        Order::Flows(order) => done(&order, fabric.flows(order.switch.clone(), order.after, order.most)),
        Order::SetSteering(order) => {
            done(&order, fabric.set_steering(order.switch.clone(), order.steering.clone()))
        }
        Order::SetPortNumbers(mut order) => {
            let numbers = std::mem::take(&mut order.numbers);
            done(&order, fabric.set_port_numbers(order.switch.clone(), numbers))
        }
        Order::PortNumbers(order) => done(&order, fabric.port_numbers(order.switch.clone())),
        Order::NewPortNumbers(order) => {
            done(&order, fabric.new_port_numbers(order.switch.clone(), order.since))
        }
        Order::ServeFunctions(order) => {
            let key = ServiceKey { switch: order.switch.clone(), service: order.service.clone() };
            done(&order, fabric.serve_functions(key, &order.token, descriptors.into_iter().next()))
        }
        Order::Steering(order) => done(&order, fabric.steering(order.switch.clone())),
        Order::Addresses(order) => done(&order, fabric.addresses(order.switch.clone())),
        Order::Ports(order) => done(&order, fabric.ports(order.switch.clone())),
        Order::Traffic(order) => done(&order, fabric.traffic()),
        Order::Account(order) => {
            let (boxes, switches) = (order.boxes.as_deref(), order.switches.as_deref());
            done(&order, fabric.account(AccountFilter { boxes, switches, services: order.services }))
        }
        Order::LinkEnds(order) => done(&order, fabric.link_ends()),
        Order::Capture(order) => {
            let opened = fabric.capture(order.point.clone(), order.snap, order.count);
            done_with(&order, opened.map(|reader| ((), vec![reader])))
        }
        Order::LoadImage(order) => {
            let file = descriptors.into_iter().next();
            done(&order, fabric.load_image(order.image, order.bytes, file))
        }
        Order::ForgetImage(order) => {
            fabric.forget_image(&order.image);
            done(&order, Ok(()))
        }
        Order::DefineBox(order) => done(&order, fabric.define_box(order.definition.clone(), order.stopped)),
        Order::DefineBoxes(mut order) => {
            let defined = fabric.define_boxes(std::mem::take(&mut order.boxes));
            let failure =
                |result: Result<(), OperationError>| result.err().map(|error| FabricError::from(&error));
            done(&order, Ok(defined.into_iter().map(failure).collect()))
        }
        Order::ForgetBox(order) => done(&order, fabric.forget_box(&order.name)),
        Order::StartBox(mut order) => {
            let configurations = std::mem::take(&mut order.configurations);
            let writes = std::mem::take(&mut order.writes);
            let how =
                StartSettings { restore: order.restore, replay: order.replay, has_equals: order.has_equals };
            done(&order, fabric.start_box(&order.name, configurations, writes, how))
        }
        Order::LaunchBox(mut order) => {
            let configurations = std::mem::take(&mut order.configurations);
            let writes = std::mem::take(&mut order.writes);
            done(&order, fabric.launch_box(order.definition.clone(), configurations, writes))
        }
        Order::StopBox(order) => done(&order, fabric.stop_box(&order.name, order.graceful)),
        Order::SuspendBox(order) => done(&order, fabric.suspend_box(&order.name)),
        Order::ResumeBox(order) => done(&order, fabric.resume_box(&order.name)),
        Order::KillBox(order) => done(&order, fabric.kill_box(&order.name)),
        Order::ReattachBox(order) => {
            done(&order, fabric.reattach_box(order.name.clone(), order.number, &order.port))
        }
        Order::AlterBox(order) => done(&order, fabric.alter_box(&order.definition)),
        Order::Install(order) => {
            done(&order, fabric.install(&order.name, order.configuration.clone(), order.writes.clone()))
        }
        Order::RemoveConfiguration(order) => {
            done(&order, fabric.remove_configuration(&order.name, &order.configuration))
        }
        Order::ReadHandler(order) => {
            let timeout = Duration::from_millis(order.timeout_ms.into());
            let handler = (order.handler.as_str(), order.argument.as_slice());
            let value = fabric.read_handler(&order.name, &order.configuration, handler, timeout);
            done(&order, value.map(ByteBuf::from))
        }
        Order::WriteHandler(order) => {
            let handler = (order.handler.as_str(), order.value.as_slice());
            done(&order, fabric.write_handler(&order.name, &order.configuration, handler))
        }
        Order::Redefine(order) => {
            done(&order, fabric.redefine(&order.name, order.configuration.clone(), &order.writes))
        }
        Order::Rewrite(order) => done(
            &order,
            fabric.rewrite(&order.configuration, &order.changes, order.limits, order.image.as_ref()),
        ),
        Order::Writes(order) => done(&order, fabric.writes(&order.name)),
        Order::BoxRuntimes(order) => done(&order, fabric.runtimes(&order.names, order.ask)),
        Order::Log(order) => done(&order, fabric.log(&order.name, order.after, entries(order.most))),
        Order::Files(order) => done(&order, fabric.files(&order.name)),
        Order::OpenFile(order) => {
            let opened = fabric.open_file(&order.name, &order.file);
            done_with(&order, opened.map(|(file, length)| (length, vec![file.into()])))
        }
        Order::Check(order) => {
            let (shape, image) = ((order.ports.into(), order.cores), order.image.as_ref());
            let checked = fabric.check(&order.configuration, shape, &order.faces, order.limits, image);
            done(&order, checked)
        }
        Order::Events(order) => {
            let (page, talkative) = fabric.events(order.after, entries(order.most));
            let events = page.entries.into_iter().map(|(_, event)| event).collect();
            done(&order, Ok(EventPage { events, lost: page.lost, talkative }))
        }
        // They belong to the connection.
        Order::OpenChannels(_) => (Err(FabricError::Unsupported), Vec::new()),
        Order::UseFolder(order) => {
            if let Some(folder) = descriptors.into_iter().next() {
                fabric.set_folder(folder);
            }
            done(&order, Ok(()))
        }
        Order::EndWithConnection(order) => {
            fabric.set_ends_with_connection();
            done(&order, Ok(()))
        }
        Order::End(order) => {
            fabric.end();
            done(&order, Ok(()))
        }
    }
}

/// The outcome of an order; its type ensures that the answer is the order's.
pub(super) fn done<A: Ask>(_: &A, result: Result<A::Answer, OperationError>) -> Outcome {
    (encoded(result.map_err(|error| FabricError::from(&error))), Vec::new())
}

/// The outcome of an order whose answer comes with descriptors.
fn done_with<A: Ask>(_: &A, result: Result<(A::Answer, Vec<OwnedFd>), OperationError>) -> Outcome {
    match result {
        Ok((answer, descriptors)) => (encoded(Ok(answer)), descriptors),
        Err(error) => (Err(FabricError::from(&error)), Vec::new()),
    }
}

fn encoded<T: serde::Serialize>(answer: Result<T, FabricError>) -> Result<ByteBuf, FabricError> {
    let bytes = codec::encode_to(&answer?, Vec::new());
    bytes.map(ByteBuf::from).map_err(|error| FabricError::Protocol(error.to_string()))
}
