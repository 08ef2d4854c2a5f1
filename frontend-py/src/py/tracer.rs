//! The tracer of the Python code that runs in this thread, which that code reaches through no argument of its own.
#![expect(
    unsafe_code,
    reason = "a borrow that lasts as long as a call of Python, which cannot pass it on"
)]

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use super::traced::Exchange;
use crate::traced::Tracer;

/// The tracer of a call, and what passes between the two.
struct Active {
    tracer: NonNull<dyn Tracer>,
    exchange: Rc<Exchange>,
}

thread_local! {
    /// None while the tracer performs a request.
    static ACTIVE: RefCell<Option<Active>> = const { RefCell::new(None) };
}

/// Puts back what was there, whatever happens in between.
struct Back(Option<Active>);

impl Drop for Back {
    fn drop(&mut self) {
        ACTIVE.set(self.0.take());
    }
}

/// Runs something in which [`serve`] reaches `tracer`.
pub(super) fn with<T>(
    tracer: &mut dyn Tracer,
    exchange: &Rc<Exchange>,
    run: impl FnOnce() -> T,
) -> T {
    let tracer: NonNull<dyn Tracer + '_> = NonNull::from(tracer);
    // SAFETY: only the lifetime changes. The pointer is dropped before `with` returns, and with it the borrow ends.
    let tracer: NonNull<dyn Tracer> = unsafe { std::mem::transmute(tracer) };
    let active = Active {
        tracer,
        exchange: exchange.clone(),
    };
    let _back = Back(ACTIVE.replace(Some(active)));
    run()
}

/// What passes between the code that runs and its tracer; nothing if none runs, or the tracer is at work.
pub(super) fn exchange() -> Option<Rc<Exchange>> {
    ACTIVE.with_borrow(|active| Some(active.as_ref()?.exchange.clone()))
}

/// Lets the tracer do what the exchange holds.
pub(super) fn serve() {
    let Some(active) = ACTIVE.take() else { return };
    let mut tracer = active.tracer;
    let _back = Back(Some(active));
    // SAFETY: `with` borrows the tracer for as long as the pointer is there, and does not use it; it has been taken
    // from where others find it until `_back` is dropped, so this is the only use.
    unsafe { tracer.as_mut() }.serve();
}
