//! Streaming responses, which continue until the client disconnects.

use crate::supervisor::{Capture, Contents, HistoryReader};
use api::operation::{Body as _, Bytes as BytesBody, Capture as CaptureBody, Lines};
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;
use std::convert::Infallible;
use tokio::sync::watch;

/// Tells streams that the server shuts down.
pub(super) type ShutdownSignal = watch::Receiver<bool>;

/// Waits until the server shuts down.
pub(super) async fn wait_for_shutdown(ending: &mut ShutdownSignal) {
    // If the sender was dropped, the server has shut down too.
    let _ = ending.wait_for(|ended| *ended).await;
}

/// Entries as lines of JSON.
pub(super) fn lines<T: Serialize + Send + 'static>(
    follow: HistoryReader<T>,
    ending: ShutdownSignal,
) -> Response {
    let stream = unfold((follow, ending), |(mut follow, mut ending)| async move {
        let entries = tokio::select! {
            entries = follow.next() => entries?,
            () = wait_for_shutdown(&mut ending) => return None,
        };
        let mut text = Vec::new();
        for entry in entries {
            // All types of the API can be written as JSON.
            if serde_json::to_writer(&mut text, &entry).is_ok() {
                text.push(b'\n');
            }
        }
        Some((Ok::<_, Infallible>(Bytes::from(text)), (follow, ending)))
    });
    let media = Lines::<api::LogLine>::MEDIA.unwrap_or_default();
    ([(CONTENT_TYPE, media)], Body::from_stream(stream)).into_response()
}

/// A stream of captured packets.
pub(super) fn capture(capture: Capture, ending: ShutdownSignal) -> Response {
    let stream = unfold((capture, ending), |(mut capture, mut ending)| async move {
        let records = tokio::select! {
            records = capture.bytes.recv() => records?,
            () = wait_for_shutdown(&mut ending) => return None,
        };
        Some((Ok::<_, Infallible>(Bytes::from(records)), (capture, ending)))
    });
    let media = CaptureBody::MEDIA.unwrap_or_default();
    ([(CONTENT_TYPE, media)], Body::from_stream(stream)).into_response()
}

/// The contents of a file.
pub(super) fn contents(contents: Contents, ending: ShutdownSignal) -> Response {
    let stream = unfold((contents, ending), |(mut contents, mut ending)| async move {
        let read = tokio::task::spawn_blocking(move || contents.next().map(|bytes| (bytes, contents)));
        let (bytes, contents) = tokio::select! {
            read = read => read.ok()??,
            () = wait_for_shutdown(&mut ending) => return None,
        };
        Some((Ok::<_, Infallible>(Bytes::from(bytes)), (contents, ending)))
    });
    let media = BytesBody::MEDIA.unwrap_or_default();
    ([(CONTENT_TYPE, media)], Body::from_stream(stream)).into_response()
}
