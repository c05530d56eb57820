<?php
// The smallest worker script: two bytes for every request.
Outboard\serve(static fn () => 'ok');
