//! Changes to several things by one command.

use crate::context::Context;
use crate::error::Failure;
use crate::output::Text;

/// Changes each item up to the first failure, and prints what was done. An item for which `change`
/// returns `None` is not printed.
pub(crate) async fn change_each<I, V: Text>(
    context: &mut Context,
    items: impl IntoIterator<Item = I>,
    change: impl AsyncFn(I) -> Result<Option<V>, Failure>,
) -> Result<(), Failure> {
    let mut done = Vec::new();
    let mut ended = Ok(());
    for item in items {
        match change(item).await {
            Ok(changed) => done.extend(changed),
            Err(failure) => {
                ended = Err(failure);
                break;
            }
        }
    }
    if ended.is_ok() || !done.is_empty() {
        context.out.each(&done)?;
    }
    ended
}
