<?php
// The smallest resident script: two bytes for whatever is asked.
Outboard\serve(static fn () => 'ok');
