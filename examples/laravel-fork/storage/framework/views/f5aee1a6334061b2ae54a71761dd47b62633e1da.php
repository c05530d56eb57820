<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title><?php echo e(config('app.name')); ?></title>
  <link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
  <h1><?php echo e(config('app.name')); ?></h1>
  <form method="post" action="/">
    <?php echo csrf_field(); ?>
    <input name="thing" maxlength="40" required aria-label="What to take" placeholder="What to take">
    <button>Add</button>
  </form>
  <ul>
    <?php $__empty_1 = true; $__currentLoopData = $things; $__env->addLoop($__currentLoopData); foreach($__currentLoopData as $thing): $__env->incrementLoopIndices(); $loop = $__env->getLastLoop(); $__empty_1 = false; ?>
      <li><?php echo e($thing); ?></li>
    <?php endforeach; $__env->popLoop(); $loop = $__env->getLastLoop(); if ($__empty_1): ?>
      <li>Nothing yet.</li>
    <?php endif; ?>
  </ul>
  <p>Laravel <?php echo e(app()->version()); ?>, booted once; process <?php echo e(getmypid()); ?> answers this request and no other.</p>
</main>
</body>
</html>
<?php /**PATH /work/wt/mvc/examples/laravel-fork/resources/views/list.blade.php ENDPATH**/ ?>