<?php
echo '<h1>Results for ', htmlspecialchars($_GET['q'] ?? ''), "</h1>\n";
