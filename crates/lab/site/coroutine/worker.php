<?php
// /wait: a request that waits for as long as it is told to.
Outboard\serve(static function (Outboard\Request $request): string {
    if ($request->path() === '/wait') {
        Outboard\sleep((float) $request->query('seconds'));
    }
    return 'ok';
});
