//! Reports about what controllers have added to switches: for the agent, which passes them on to controllers, and for the daemon.

use crate::error::{OperationError, PortError};
use crate::lifecycle::Fabric;
use openflow::ErrorCode;
use openflow::message::{HEADER, Message, MultipartRequest, encode_multipart};
use openflow::session::Report;
use protocol::fabric::ControllerReportReply;
use protocol::fabric::orders::ControllerReport;
use serde_bytes::ByteBuf;

/// Answers a multipart request of the daemon.
pub(super) fn controller_report(
    fabric: &Fabric,
    order: &ControllerReport,
) -> Result<ControllerReportReply, OperationError> {
    let refused = |_| PortError::Malformed("the request for a report of controllers is malformed");
    let request = multipart_request(&order.request).map_err(refused)?;
    let part = fabric.controller_report(order.switch.clone(), request, order.from)?;
    Ok(ControllerReportReply { bodies: bodies(&part), next: part.next })
}

/// A multipart request, from what follows the header of its message.
pub(super) fn multipart_request(body: &[u8]) -> Result<MultipartRequest, ErrorCode> {
    match Message::decode(18, body)? {
        Message::MultipartRequest { request, .. } => Ok(request),
        _ => Err(ErrorCode::BRC_BAD_TYPE),
    }
}

/// The messages of a part of a report, without their headers.
pub(super) fn bodies(part: &Report) -> Vec<ByteBuf> {
    let messages = encode_multipart(0, &part.reply, part.next.is_some());
    messages.into_iter().filter_map(without_header).collect()
}

/// What follows the header of a message.
pub(super) fn without_header(mut message: Vec<u8>) -> Option<ByteBuf> {
    (message.len() >= HEADER).then(|| ByteBuf::from(message.split_off(HEADER)))
}
