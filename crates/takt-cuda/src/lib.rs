//! What happens under a CUDA program.
//!
//! Programs reach this crate through `takt-cuda-hook`, a library with the name of their driver's. Calls that give the
//! GPU work ask for time first, in the thread that makes them; nothing is queued, copied or reordered.
//!
//! * [`driver`]: the real driver. [`entry`]: which addresses programs get for names.
//! * [`class`]: what each hooked call is. [`hooks`]: what is done about it.
//! * [`gate`]: the credit of the process, which a launch takes its predicted time from. [`client`]: forms command
//!   groups, asks the daemon for the next one, ends jobs.
//! * [`streams`]: which streams a group touched. [`capture`]: streams that are written down instead of executed.
//! * [`deadlines`]: streams whose work has a deadline, as the program says.
//! * [`ends`]: when groups were over, by events in the program's own streams.
//! * [`predict`]: what launches, copies and graphs will take.
//! * [`settings`]: what `takt run` asks for. [`facts`]: what `takt doctor` wants to know.
//! * [`witness`]: what the vendor's profiling interface counts, to compare with that.

pub mod capture;
pub mod class;
pub mod client;
pub mod deadlines;
pub mod driver;
pub mod ends;
pub mod entry;
pub mod facts;
pub mod gate;
pub mod hooks;
pub mod predict;
pub mod settings;
pub mod streams;
pub mod witness;

pub use takt_client::guard;
