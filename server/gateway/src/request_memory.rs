//! [`RequestMemory`]: the memory of a request to PHP and of its response, which later requests reuse.
//!
//! Owned by [`crate::script`] for the time of a request, and by the app in between. Invariant: nothing
//! of one request is left for the next.

use crate::response_head::ResponseHead;
use outboard_php_pool::exchange::{Exchange, ResponseData};
use std::rc::Rc;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RequestMemory {
    exchange: Option<Rc<Exchange>>,
    frame: Vec<u8>,
    /// The head of the response.
    pub(crate) head: ResponseHead,
    /// The part of the response that has arrived and was not sent.
    pub(crate) arrived: ResponseData,
}

impl RequestMemory {
    /// An empty buffer for the frame, which becomes part of the exchange.
    pub(crate) fn take_frame(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frame)
    }

    /// Stores the exchange of a request, in the memory of an earlier one.
    pub(crate) fn start(&mut self, exchange: Exchange) -> &Rc<Exchange> {
        let exchange = exchange.received_in(std::mem::take(&mut self.arrived));
        let exchange = exchange.replacing(self.exchange.take());
        self.exchange.insert(exchange)
    }

    /// Stores the exchange of a request that a worker runs already.
    pub(crate) fn adopt(&mut self, exchange: Rc<Exchange>) {
        self.exchange = Some(exchange);
    }

    /// The exchange of the request.
    pub(crate) fn exchange(&self) -> &Rc<Exchange> {
        self.exchange.as_ref().expect("a request was started")
    }

    /// Removes everything that belongs to the request.
    pub(crate) fn clear(&mut self) {
        if let Some((exchange, frame)) = self.exchange.take().and_then(Exchange::release) {
            (self.exchange, self.frame) = (Some(exchange), frame);
        }
        self.head.clear();
        self.arrived.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_loop;
    use outboard_buffer::RequestBody;

    #[test]
    fn a_request_that_a_worker_still_has_is_not_stored() {
        in_loop(async {
            let mut memory = RequestMemory::default();
            memory.start(Exchange::new(vec![1], RequestBody::empty(), 1, 0, 10));
            let worker = memory.exchange().clone();
            memory.clear();
            assert_eq!(Rc::strong_count(&worker), 1);
            assert_eq!(memory.take_frame().capacity(), 0);
        });
    }

    #[test]
    fn nothing_of_a_request_is_left_for_the_next() {
        in_loop(async {
            let mut memory = RequestMemory::default();
            for id in 1..=2 {
                let mut frame = memory.take_frame();
                assert!(frame.is_empty());
                assert_eq!(frame.capacity() > 0, id > 1, "the second one reuses the first");
                frame.extend_from_slice(b"frame");
                memory.start(Exchange::new(frame, RequestBody::empty(), id, 0, 10));
                assert_eq!(memory.exchange().request_id, id);
                assert_eq!(memory.exchange().frame, b"frame");
                assert!(memory.exchange().take().is_none());
                assert_eq!(memory.head, ResponseHead::default());
                memory.head.status = 500;
                memory.head.headers.add(b"X-Own", b"1").unwrap();
                memory.head.headers.owns_server = true;
                memory.head.reason.push(b'x');
                memory.arrived.body.extend_from_slice(b"body");
                memory.clear();
            }
        });
    }
}
