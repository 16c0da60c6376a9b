//! How entry points are written down.

/// Exports functions whose bodies give an [`Answer`](crate::Answer). None does anything in a copy of the process.
macro_rules! api {
    ($( fn $name:ident ( $($arg:ident : $ty:ty),* $(,)? ) $body:block )*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
                #[allow(unused_unsafe, reason = "not all of them need it")]
                let call = || -> crate::Answer {
                    crate::world::alive()?;
                    // SAFETY: up to the caller, as the vendor says.
                    unsafe { $body }
                };
                crate::code(call())
            }
        )*
    };
}

/// The same for functions with a second name, whose default stream is that of the thread: `home` says which.
macro_rules! twins {
    ($( fn $name:ident, $twin:ident ( $home:ident $(, $arg:ident : $ty:ty)* $(,)? ) $body:block )*) => {
        $(
            api! {
                fn $name($($arg: $ty),*) {
                    let $home = crate::world::Home::Legacy;
                    $body
                }
                fn $twin($($arg: $ty),*) {
                    let $home = crate::world::Home::Thread;
                    $body
                }
            }
        )*
    };
}
