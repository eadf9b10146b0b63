//! The body of a response stream: messages as they come, then the trailers that end it.

use super::wire::Message;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tonic::Status;

/// What the task of a stream hands to the transport.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A message.
    Message(Message),
    /// The end of the stream.
    End(Status),
}

/// The body. It is read only while the client's window has room, so the channel in front of it is
/// the back-pressure.
#[derive(Debug)]
pub(super) struct StreamBody {
    outgoing: mpsc::Receiver<Outgoing>,
    message: Option<Message>,
    ended: bool,
}

impl StreamBody {
    /// A body, and where its messages go in. One message is taken in while the one before it is
    /// being sent.
    pub(super) fn channel() -> (mpsc::Sender<Outgoing>, StreamBody) {
        let (sender, outgoing) = mpsc::channel(1);
        (sender, StreamBody { outgoing, message: None, ended: false })
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(piece) = self.message.as_mut().and_then(Message::next_piece) {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            self.message = None;
            let status = match ready!(self.outgoing.poll_recv(cx)) {
                Some(Outgoing::Message(message)) => {
                    self.message = Some(message);
                    continue;
                }
                Some(Outgoing::End(status)) => status,
                None => Status::internal("the stream's task failed"),
            };
            self.ended = true;
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(match status.add_header(&mut trailers) {
                Ok(()) => Ok(Frame::trailers(trailers)),
                Err(status) => Err(status),
            }));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
