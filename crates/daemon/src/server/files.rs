//! Uploads in requests: the operations on them, and their contents for requests that name them.

use super::memory::RequestMemory;
use super::record::RecordNote;
use super::request::PathNames;
use super::respond::{ErrorResponse, answer, wait};
use super::uploads::{Uploads, UsedUploads};
use crate::caller::Caller;
use crate::supervisor::{HeldImage, Supervisor};
use api::{
    BoxName, CreateService, ErrorCode, File, ImageDigest, ImageSource, MAX_IMAGE_BYTES, Stack, UploadName,
    UploadedFile, operation,
};
use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use std::collections::HashMap;

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

/// Returns an image that a box of the caller runs.
pub(super) async fn image(
    Extension(supervisor): Extension<Supervisor>,
    Extension(memory): Extension<RequestMemory>,
    PathNames(digest): PathNames<ImageDigest>,
) -> Result<Response, ErrorResponse> {
    memory.take_in_time(MAX_IMAGE_BYTES).await?;
    let contents = wait(supervisor, move |supervisor| supervisor.image(digest)).await?;
    let media = <operation::Bytes as operation::Body>::MEDIA.unwrap_or_default();
    Ok(([(CONTENT_TYPE, media)], contents).into_response())
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
    /// Stores the images of boxes that are uploads, and replaces them by their digests. They stay stored as long as the
    /// result exists. What the uploads are is added to `used`.
    pub(super) async fn load_images(
        &self,
        supervisor: &Supervisor,
        used: &mut UsedUploads,
        images: Vec<&mut Option<ImageSource>>,
    ) -> Result<Vec<HeldImage>, ErrorResponse> {
        let mut held: Vec<HeldImage> = Vec::new();
        let mut known: HashMap<UploadName, ImageDigest> = HashMap::new();
        for image in images.into_iter().flatten() {
            let digest = match image {
                ImageSource::Digest(digest) => Some(*digest),
                ImageSource::Upload(upload) => known.get(upload).copied(),
            };
            let added = match (digest, &*image) {
                (None, ImageSource::Upload(upload)) => {
                    let mut named = vec![UploadedFile { name: String::new(), upload: upload.clone() }];
                    let mut files = Vec::new();
                    used.extend(self.load(vec![(&mut named, &mut files)]).await?);
                    let contents = files.pop().map(|file| file.contents.0).unwrap_or_default();
                    let add = move |supervisor: &Supervisor| supervisor.add_image(&contents);
                    let added = wait(supervisor.clone(), add).await?;
                    known.insert(upload.clone(), added.digest());
                    added
                }
                (Some(digest), _) if held.iter().any(|held| held.digest() == digest) => {
                    *image = ImageSource::Digest(digest);
                    continue;
                }
                (Some(digest), _) => {
                    wait(supervisor.clone(), move |supervisor| supervisor.hold_image(digest)).await?
                }
                (None, ImageSource::Digest(_)) => continue,
            };
            *image = ImageSource::Digest(added.digest());
            held.push(added);
        }
        Ok(held)
    }

    /// The same for all boxes of a stack.
    pub(super) async fn load_images_of_stack(
        &self,
        supervisor: &Supervisor,
        used: &mut UsedUploads,
        stack: &mut Stack,
    ) -> Result<Vec<HeldImage>, ErrorResponse> {
        let instances = stack.services.iter_mut().map(|service| &mut service.instance);
        let images = stack.boxes.iter_mut().chain(instances).map(|wanted| &mut wanted.image).collect();
        self.load_images(supervisor, used, images).await
    }

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
