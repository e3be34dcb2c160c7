//! The gate in front of each operation: rights, owners of the objects in the path, and the audit log.

use super::admission::Connection;
use super::memory::MemoryPool;
use super::record::Record;
use super::respond::{ErrorResponse, wait};
use crate::caller::Caller;
use crate::supervisor::Supervisor;
use api::operation::Entry;
use api::{ErrorCode, Subject};
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// What decides whether a request may pass to its operation.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) supervisor: Supervisor,
    pub(super) operation: &'static dyn Entry,
    pub(super) memory: MemoryPool,
}

/// Passes requests whose caller may use the operation and the objects in its path, with the supervisor as the caller may
/// use it.
pub(super) async fn authorize(
    State(Gate { supervisor, operation, memory }): State<Gate>,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        let error = ErrorResponse::new(ErrorCode::Internal, "the request has no caller");
        return error.into_response();
    };
    let peer = request.extensions().get::<Arc<Connection>>().map(|connection| connection.peer);
    let record = Record::begin(&supervisor, operation, &path, &caller, peer);
    request.extensions_mut().insert(record.as_ref().map(Record::note).unwrap_or_default());
    // It is held until the response is sent.
    let memory = memory.for_request(&caller);
    request.extensions_mut().insert(memory.clone());
    let entry = record.as_ref().map(Record::entry).unwrap_or_default();
    let supervisor = supervisor.for_request(caller.clone(), entry);
    let mut refusal = None;
    if caller != Caller::Administrator {
        let subjects = subjects(operation, &path);
        let check = move |supervisor: &Supervisor| supervisor.authorize(operation.right(), &subjects);
        refusal = wait(supervisor.clone(), check).await.err();
    }
    let response = match refusal {
        Some(refusal) => refusal.into_response(),
        None => {
            request.extensions_mut().insert(supervisor);
            next.run(request).await
        }
    };
    if let Some(record) = record {
        let error = response.extensions().get::<ErrorCode>().copied();
        record.finish(error).await;
    }
    response.map(|body| memory.until_sent(body))
}

/// The objects in the path of a request that must exist. Invalid names are reported by the operation.
fn subjects(operation: &dyn Entry, path: &RawPathParams) -> Vec<Subject> {
    // These create the stack if there is none: a name that another owner uses is taken, not missing.
    let may_create = ["apply_stack", "diff_stack"].contains(&operation.name());
    let subject = |(kind, name): (&str, &str)| match kind {
        "box" => name.parse().ok().map(Subject::Box),
        "switch" => name.parse().ok().map(Subject::Switch),
        "service" => name.parse().ok().map(Subject::Service),
        "stack" if !may_create => name.parse().ok().map(Subject::Stack),
        _ => None,
    };
    path.iter().filter_map(subject).collect()
}
