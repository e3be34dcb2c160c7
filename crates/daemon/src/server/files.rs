//! Uploads in requests: the operations on them, and their contents for requests that name them.

use super::memory::RequestMemory;
use super::record::RecordNote;
use super::request::PathNames;
use super::respond::{ErrorResponse, answer};
use super::uploads::{Uploads, UsedUploads};
use crate::caller::Caller;
use crate::supervisor::Supervisor;
use api::{BoxName, CreateService, ErrorCode, File, Stack, UploadName, UploadedFile};
use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};

/// Receives an upload.
pub(super) async fn upload(
    State(uploads): State<Uploads>,
    Extension(caller): Extension<Caller>,
    Extension(note): Extension<RecordNote>,
    PathNames(name): PathNames<UploadName>,
    request: Request,
) -> Result<StatusCode, ErrorResponse> {
    let bytes = uploads.receive(&caller, &name, request.into_body()).await?;
    note.detail(format!("{bytes} bytes").as_bytes());
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an upload.
pub(super) async fn remove_upload(
    State(uploads): State<Uploads>,
    Extension(caller): Extension<Caller>,
    PathNames(name): PathNames<UploadName>,
) -> Result<StatusCode, ErrorResponse> {
    uploads.remove(&caller, &name).map(|()| StatusCode::NO_CONTENT)
}

/// The uploads that requests name, for the caller of a request.
pub(super) struct Files {
    uploads: Uploads,
    caller: Caller,
    memory: RequestMemory,
}

impl<S: Send + Sync> FromRequestParts<S> for Files
where
    Uploads: FromRef<S>,
{
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let caller = parts.extensions.get::<Caller>().cloned();
        match caller.zip(parts.extensions.get::<RequestMemory>().cloned()) {
            Some((caller, memory)) => Ok(Self { uploads: Uploads::from_ref(state), caller, memory }),
            None => Err(ErrorResponse::new(ErrorCode::Internal, "the request has no caller")),
        }
    }
}

impl Files {
    /// Adds the contents of the uploads to the files of requests.
    pub(super) async fn load(
        &self,
        sets: Vec<(&mut Vec<UploadedFile>, &mut Vec<File>)>,
    ) -> Result<UsedUploads, ErrorResponse> {
        self.uploads.load(&self.caller, &self.memory, sets).await
    }

    /// The same for all boxes of a stack.
    pub(super) async fn load_stack(&self, stack: &mut Stack) -> Result<UsedUploads, ErrorResponse> {
        let instances = stack.services.iter_mut().map(|service| &mut service.instance);
        let all = stack.boxes.iter_mut().chain(instances);
        self.load(all.map(|wanted| (&mut wanted.uploads, &mut wanted.files)).collect()).await
    }

    /// Takes memory for the stored files of a stack's boxes, which are compared with those of the request one box at a time.
    pub(super) async fn take_stored(
        &self,
        supervisor: Supervisor,
        stack: &Stack,
    ) -> Result<(), ErrorResponse> {
        let mut boxes: Vec<BoxName> = stack.boxes.iter().map(|wanted| wanted.name.clone()).collect();
        let first = stack.services.iter().map(|service| CreateService::instance_name(&service.name, 1));
        boxes.extend(first.flatten());
        let Json(bytes) = answer(supervisor, move |supervisor| supervisor.bytes_to_compare(&boxes)).await?;
        self.memory.take_in_time(bytes).await
    }

    /// Removes uploads that were installed.
    pub(super) fn remove_used(&self, used: UsedUploads) {
        self.uploads.remove_used(used);
    }
}
