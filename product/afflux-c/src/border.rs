//! The border: the result that C gets from a call, in every case.
//!
//! Owns: the conversion of an answer into a number, the text of the thread's last failure, catching panics.
//! Does not own: the codes (`code`).
//! Invariants: no panic crosses the border. A panic in a call takes the cache out of use, as one in a task of the cache
//! does, since it may have left the cache half changed.

use std::any::Any;
use std::cell::RefCell;
#[cfg(test)]
use std::ffi::CStr;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use afflux::Cache;

use crate::code::{Code, code_of, text_of};

/// Why a call failed: its code, and a text with the failure and its object; none if the code is enough.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub(crate) code: c_int,
    text: Option<String>,
}

/// The result of a call.
pub(crate) type Answer<T> = Result<T, CallFailure>;

impl CallFailure {
    pub(crate) fn of(code: Code) -> Self {
        Self { code: code as c_int, text: None }
    }

    fn with_code(code: Code, text: String) -> Self {
        Self { code: code as c_int, text: Some(text) }
    }

    pub(crate) fn bad_handle(text: String) -> Self {
        Self::with_code(Code::BadHandle, text)
    }

    pub(crate) fn bad_address(what: &str) -> Self {
        Self::with_code(Code::BadAddress, format!("{what} is NULL, or not aligned"))
    }

    pub(crate) fn invalid(text: String) -> Self {
        Self::with_code(Code::Invalid, text)
    }

    pub(crate) fn no_memory(text: String) -> Self {
        Self::with_code(Code::NoMemory, text)
    }

    pub(crate) fn forked(what: &str) -> Self {
        Self::with_code(Code::Forked, format!("the {what} belongs to the parent process: a forked child opens its own"))
    }

    pub(crate) fn unwritten(unwritten: &afflux::Unwritten) -> Self {
        Self::with_code(Code::Io, unwritten.to_string())
    }

    fn panicked(panic: &str) -> Self {
        Self::with_code(Code::Poisoned, format!("the cache is out of use: a panic: {panic}; please report it"))
    }
}

impl From<io::Error> for CallFailure {
    fn from(error: io::Error) -> Self {
        let code = code_of(&error);
        // This frequent failure has a code only.
        let text = (code != Code::WouldBlock as c_int).then(|| error.to_string());
        Self { code, text }
    }
}

thread_local! {
    /// The thread's last failure.
    static LAST: RefCell<(c_int, Option<CString>)> = const { RefCell::new((0, None)) };
}

/// The text of this thread's last failed call: the failure, the file, and the next step for the user. The text is valid
/// until another call of this thread fails. "no error" if none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_last_error() -> *const c_char {
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        last.1.as_deref().unwrap_or_else(|| text_of(last.0.into())).as_ptr()
    });
    told.unwrap_or(c"the thread is ending".as_ptr())
}

/// Keeps a failure for [`afflux_last_error`].
pub(crate) fn keep(failure: CallFailure) -> c_int {
    let text = failure.text.map(|text| CString::new(text.replace('\0', "\\0")).unwrap_or_default());
    let _ = LAST.try_with(|last| last.replace((failure.code, text)));
    failure.code
}

/// The text in C's form; everything after a zero byte is left out.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Does the work of a call that returns a count.
#[inline]
pub(crate) fn count(work: impl FnOnce() -> Answer<u64>) -> i64 {
    match caught(work) {
        Ok(count) => i64::try_from(count).unwrap_or(i64::MAX),
        Err(failure) => keep(failure).into(),
    }
}

/// Does the work of a call that returns only success or failure.
#[inline]
pub(crate) fn status(work: impl FnOnce() -> Answer<()>) -> c_int {
    match caught(work) {
        Ok(()) => 0,
        Err(failure) => keep(failure),
    }
}

#[inline]
fn caught<T>(work: impl FnOnce() -> Answer<T>) -> Answer<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(CallFailure::panicked(said(panic.as_ref()))))
}

/// Does work with a cache; a panic takes it out of use.
#[inline]
pub(crate) fn guarded<T>(cache: impl FnOnce() -> Cache, work: impl FnOnce() -> Answer<T>) -> Answer<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = said(panic.as_ref());
        cache().poison(said);
        Err(CallFailure::panicked(said))
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// The text of the last failure, for tests.
#[cfg(test)]
pub(crate) fn last() -> String {
    // SAFETY: the text is valid until the next failure.
    unsafe { CStr::from_ptr(afflux_last_error()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
